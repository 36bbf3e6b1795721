"""What an upgrade changes of data: records, local state, and the topology that a streams group keeps."""

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.describe import read_description
from headwater.model.problems import Severity
from headwater.model.topology import DescribedTopology, TopologyDocument
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.upgrade import ApplicationUpgrade, ChangeKind, compare_versions
from tests.compiler import topologies
from tests.compiler.applications import document
from tests.upgrade.upgrade_cases import JOINS, NO_STATE, PLAIN, upgrade

WINDOWED = """
application: {id: windows, kafkaStreams: "4.3"}
topology:
  - stream: orders
  - groupByKey: {}
  - windowedBy: {tumbling: {size: 1h}}
  - count: {materialized: counts}
  - toStream: {}
  - to: results
"""
JOINS_OF_A_STREAMS_GROUP = f"""
application: {{id: joins, kafkaStreams: "4.2", protocol: streams}}
{topologies.SUPPLIED_JOIN_STORES}"""


def only(text: str, to: str) -> ApplicationUpgrade:
    (application,) = upgrade(text, to=to).applications
    return application


def sources(text: str, to: str) -> list[str]:
    return [note.source for note in only(text, to).data]


@pytest.mark.parametrize(
    ("text", "to", "expected"),
    [
        (PLAIN, "4.2", []),
        (PLAIN, "4.3", ["KIP-1035"]),
        (PLAIN.replace("4.1", "4.3"), "4.4", []),
        (NO_STATE, "4.4", []),
        (JOINS, "4.3", ["KIP-1035", "KIP-1271"]),
        (WINDOWED, "4.4", ["KIP-1321"]),
        (WINDOWED.replace("  - to: results\n", ""), "4.4", []),
        (WINDOWED.replace('"4.3"', '"4.2"'), "4.3", ["KIP-1035"]),
    ],
)
def test_only_what_concerns_the_application_is_reported(text: str, to: str, expected: list[str]) -> None:
    assert sources(text, to) == expected


@pytest.mark.parametrize(
    ("config", "to", "expected"),
    [
        ("dsl.store.format: headers", "4.4", ["KIP-1035", "KIP-1271, KIP-1285"]),
        ("dsl.store.format: DEFAULT", "4.4", ["KIP-1035"]),
        ("enable.transactional.statestores: true", "4.3", ["KIP-1035"]),
        ("enable.transactional.statestores: true", "4.4", ["KIP-1035", "KIP-892"]),
        ("enable.transactional.statestores: false", "4.4", ["KIP-1035"]),
    ],
)
def test_configs_that_begin_to_have_an_effect_are_reported(config: str, to: str, expected: list[str]) -> None:
    text = PLAIN.replace('kafkaStreams: "4.1"', f'kafkaStreams: "4.1", config: {{{config}}}')
    assert sources(text, to) == expected


def described(*lines: str) -> TopologyDocument:
    text = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [orders])\n" + "\n".join(lines) + "\n\n"
    nodes, problems = read_description(text)
    assert not problems
    made = document("topology: [{stream: orders}]")
    return attrs.evolve(made, steps=(), described=DescribedTopology(nodes, made.application.at))


@pytest.mark.parametrize(
    ("aggregates", "before", "expected"),
    [(True, "3.3.2", 1), (True, "3.5.2", 0), (False, "3.3.2", 0)],
)
def test_grouped_tables_need_two_restarts_before_3_5(aggregates: bool, before: str, expected: int) -> None:  # noqa: FBT001 - parameter of a test
    name = "KTABLE-AGGREGATE-0000000005" if aggregates else "KSTREAM-AGGREGATE-0000000005"
    made = described(
        f"      --> {name}", f"    Processor: {name} (stores: [counts])", "      --> none", "      <-- s"
    )
    old, new = (
        compile_document(
            attrs.evolve(made, application=attrs.evolve(made.application, kafka_streams=each)), {"orders": 2}
        )
        for each in (KafkaStreamsVersion(*map(int, before.split("."))), KafkaStreamsVersion(4, 2, 2))
    )
    notes = [note for note in compare_versions(old, new).data if note.source == "KIP-904"]
    assert len(notes) == expected
    assert all('`upgrade.from: "3.3"`' in note.first for note in notes)


def test_a_streams_group_refuses_other_settings_of_internal_topics() -> None:
    found = only(JOINS_OF_A_STREAMS_GROUP, "4.3")
    (refused,) = [change for change in found.changes if change.kind is ChangeKind.REFUSED]
    assert refused.severity is Severity.ERROR
    assert "joins-mine-changelog, joins-others-changelog" in refused.what
    assert "--delete --group joins" in refused.first
    assert found.obstacle == "the new version does not start"
    classic = only(JOINS_OF_A_STREAMS_GROUP.replace(", protocol: streams", ""), "4.3")
    assert classic.is_rolling


def test_a_streams_group_accepts_the_same_topology() -> None:
    assert only(PLAIN.replace("id: plain,", "id: plain, protocol: streams,"), "4.4").is_rolling
