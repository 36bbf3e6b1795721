"""Settings of a document that change how an application behaves, although no topic changes."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.records import SetupRecord
from headwater.model.topology import Application
from headwater.planner.document_settings import document_settings, setting_changes
from tests.compiler.applications import document
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster
from tests.planner.simulated_cluster import application as compiled

BEFORE = "{id: app, kafkaStreams: '4.2', config: {num.standby.replicas: 1}}"


def application(text: str) -> Application:
    return document(f"application: {text}\ntopology: [{{stream: orders}}, {{to: copies}}]").application


def record(of: Application) -> SetupRecord:
    return SetupRecord(of.id, {}, kafka_streams=str(of.kafka_streams), settings=document_settings(of))


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (BEFORE, {}),
        (BEFORE.replace("1}", "2}"), {"num.standby.replicas": "1 → 2"}),
        (BEFORE.replace("num.standby.replicas: 1", ""), {"num.standby.replicas": "1 → unset"}),
        (
            BEFORE.replace("1}", "1, partition.autoscaling.enabled: true}"),
            {"partition.autoscaling.enabled": "unset → true"},
        ),
        (BEFORE.replace("id: app,", "id: app, protocol: streams,"), {"protocol": "classic → streams"}),
        (BEFORE.replace("id: app,", "id: app, processors: 2,"), {"processors": "unset → 2"}),
        (BEFORE.replace("4.2", "4.3"), {"kafkaStreams": "4.2.2 → 4.3.1"}),
        (BEFORE.replace("4.2", "4.2.1"), {}),
        (BEFORE.replace("kafkaStreams: '4.2', ", ""), {}),
        (BEFORE.replace("1}", "1, ssl.key.password: a, producer.sasl.jaas.config: b}"), {}),
        (BEFORE.replace("id: app,", "id: app, setup: {reinitialize: true},"), {}),
    ],
)
def test_what_counts_as_a_changed_setting(after: str, changes: Mapping[str, str]) -> None:
    found = setting_changes(application(after), record(application(BEFORE)))
    assert {change.key: change.text for change in found} == changes


def test_nothing_is_known_without_recorded_settings() -> None:
    changed = application(BEFORE.replace("1}", "2}"))
    before = record(application(BEFORE))
    assert setting_changes(changed, None) == ()
    assert setting_changes(changed, attrs.evolve(before, settings={})) == ()
    assert setting_changes(changed, attrs.evolve(before, unfinished=True)) == ()


def test_a_changed_setting_is_a_change_of_the_plan_once() -> None:
    cluster = SimulatedCluster.set_up(compiled())
    manual = compiled(config=MANUAL)
    planned = cluster.up(manual)
    assert planned.has_changes
    assert not any(action.is_change for action in planned.actions)
    assert not cluster.plan(manual).has_changes
