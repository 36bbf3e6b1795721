"""A plan after the document names another version of Kafka Streams."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.nodes import NodeTopology
from headwater.model.problems import PLAN, Location, Problem, ProblemCode, Severity, errors
from headwater.model.records import SetupRecord
from headwater.model.topology import DescribedTopology, Setup, TopologyDocument
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion
from headwater.planner import Plan, plan
from headwater.planner.drift import find_drift
from headwater.planner.upgrade import compile_recorded, with_recorded_versions
from headwater.planner.upgrade.changes import NO_DOWNGRADES
from headwater.report import problems_text
from tests.compiler.applications import document
from tests.planner.simulated_cluster import (
    MANUAL,
    NO_LIMITS,
    SimulatedCluster,
    application,
    changelog,
    repartition,
)

GOLDEN = Path(__file__).parents[1] / "upgrade/golden"
OLD, NEW = KafkaStreamsVersion(3, 9, 2), KafkaStreamsVersion(4, 3, 1)
CODE = ProblemCode.KAFKA_STREAMS_CHANGED


def _compiled(
    version: KafkaStreamsVersion,
    topics: Sequence[InternalTopic],
    *,
    setup: Setup | None = None,
    config: Mapping[str, str] | None = None,
) -> CompiledApplication:
    made = application(topics=topics, setup=setup, config=config)
    named = attrs.evolve(made.application, kafka_streams=version, names_version=True)
    return attrs.evolve(made, application=named)


BEFORE = (repartition("orders-a-repartition", 4), changelog("orders-counts-changelog", 4))
WITHOUT_STATE = (repartition("orders-a-repartition", 4), changelog("orders-others-changelog", 4))
WITHOUT_REPARTITION = (changelog("orders-counts-changelog", 4),)


def _planned(
    after: Sequence[InternalTopic], *, setup: Setup | None = None, config: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan for the new version of an application that was set up with the old one."""
    old = _compiled(OLD, BEFORE, config=config)
    cluster = SimulatedCluster.set_up(old)
    assert cluster.records["orders"].kafka_streams == "3.9.2"
    new = _compiled(NEW, after, setup=setup, config=config)
    return plan([new], cluster.snapshot, cluster.records, NO_LIMITS, caller=PLAN, earlier={"orders": old})


def _changes(planned: Plan) -> list[Problem]:
    return [problem for problem in planned.problems if problem.code is CODE]


@pytest.mark.parametrize("config", [{}, MANUAL], ids=["automatic", "manual"])
def test_a_version_that_does_not_use_a_changelog_is_refused(config: Mapping[str, str]) -> None:
    planned = _planned(WITHOUT_STATE, config=config)

    assert [(problem.code, problem.topic) for problem in errors(planned.problems)] == [
        (CODE, "orders-counts-changelog")
    ]
    assert "`setup.reinitialize: true`" in _changes(planned)[0].fix


def test_drift_reports_a_version_that_the_plan_refuses() -> None:
    """Otherwise its new topics would only be missing: `pulumi up` creates missing topics."""
    old = _compiled(OLD, BEFORE)
    cluster = SimulatedCluster.set_up(old)
    new = _compiled(NEW, WITHOUT_STATE)

    found = find_drift([new], cluster.snapshot, cluster.records, earlier={"orders": old})

    assert found.problems == tuple(errors(_planned(WITHOUT_STATE).problems))
    assert {problem.code for problem in found.problems} == {CODE}


def test_lost_state_is_accepted_by_reinitialize_and_stays_a_warning() -> None:
    planned = _planned(WITHOUT_STATE, setup=Setup(reinitialize=True))

    assert planned.is_applicable
    assert [problem.severity for problem in _changes(planned)] == [Severity.WARNING]
    assert ProblemCode.CONFIG_HAS_NO_EFFECT not in {problem.code for problem in planned.problems}


def test_a_dropped_repartition_topic_is_a_warning() -> None:
    planned = _planned(WITHOUT_REPARTITION)

    assert planned.is_applicable
    assert [(problem.topic, problem.severity) for problem in _changes(planned)] == [
        ("orders-a-repartition", Severity.WARNING)
    ]


def test_the_plan_names_both_versions_and_records_the_new_one() -> None:
    (part,) = _planned(BEFORE).applications

    assert part.notes == ("Kafka Streams 3.9.2 to 4.3.1: a rolling restart is safe",)
    assert part.record is not None
    assert part.record.kafka_streams == "4.3.1"
    assert part.record == part.recorded
    assert [(change.key, change.text) for change in part.settings] == [("kafkaStreams", "3.9.2 → 4.3.1")]


def test_the_texts_of_a_refused_version(golden: Callable[[Path, str], None]) -> None:
    problems = [*_changes(_planned(WITHOUT_STATE)), *_changes(_planned(WITHOUT_REPARTITION))]

    golden(GOLDEN / "plan.txt", problems_text(problems) + "\n")


def _document(version: str) -> TopologyDocument:
    return document(
        f'application: {{id: app, kafkaStreams: "{version}"}}\ntopology: [{{stream: orders}}, {{to: copies}}]'
    )


@pytest.mark.parametrize(
    ("recorded", "versions"),
    [("4.0.2", ["4.0.2"]), ("4.1.2", []), ("", []), ("4.9.0", [])],
    ids=["another", "the same", "not recorded", "not known"],
)
def test_an_application_is_compiled_for_the_recorded_version_if_it_is_another(
    recorded: str, versions: list[str]
) -> None:
    record = SetupRecord("app", {}, kafka_streams=recorded)

    found = compile_recorded([_document("4.1")], {"app": record}, {"orders": 1})

    assert [str(each.application.kafka_streams) for each in found.values()] == versions
    assert compile_recorded([_document("4.1")], {}, {"orders": 1}) == {}


def test_an_application_with_a_described_text_is_not_compiled_for_another_version() -> None:
    record = SetupRecord("app", {}, kafka_streams="4.0.2")
    described = DescribedTopology(NodeTopology(()), at=Location("app.yaml"))

    made = attrs.evolve(_document("4.1"), described=described, steps=())

    assert compile_recorded([made], {"app": record}, {"orders": 1}) == {}


UNNAMED = document("application: {id: app}\ntopology: [{stream: orders}, {to: copies}]")


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (None, str(DEFAULT_VERSION)),
        (SetupRecord("app", {}, kafka_streams="4.0.2"), "4.0.2"),
        (SetupRecord("app", {}, kafka_streams="4.2.9"), "4.2.2"),
        (SetupRecord("app", {}, kafka_streams="5.0.0"), str(DEFAULT_VERSION)),
        (SetupRecord("app", {}), "4.1.2"),
        (SetupRecord("app", {}, unfinished=True), str(DEFAULT_VERSION)),
    ],
    ids=["new", "recorded", "later patch", "unknown release", "before versions were recorded", "unfinished"],
)
def test_a_document_without_a_version_keeps_that_of_the_last_setup(
    record: SetupRecord | None, version: str
) -> None:
    records = {"app": record} if record else {}

    (unnamed, named) = with_recorded_versions([UNNAMED, _document("3.9")], records)

    assert str(unnamed.application.kafka_streams) == version
    assert str(named.application.kafka_streams) == "3.9.2"


def test_a_renamed_application_without_a_version_keeps_that_of_its_former_id() -> None:
    renamed = attrs.evolve(UNNAMED, application=attrs.evolve(UNNAMED.application, renamed_from="former"))

    (found,) = with_recorded_versions([renamed], {"former": SetupRecord("former", {}, kafka_streams="4.0.2")})

    assert str(found.application.kafka_streams) == "4.0.2"


def _unnamed(version: KafkaStreamsVersion, *, is_named: bool = False) -> list[Problem]:
    compiled = _compiled(version, BEFORE)
    compiled = attrs.evolve(compiled, application=attrs.evolve(compiled.application, names_version=is_named))
    return list(SimulatedCluster.set_up(compiled).plan(compiled).problems)


def test_a_warning_names_the_version_that_a_document_should_name(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "unnamed.txt", problems_text(_unnamed(KafkaStreamsVersion(4, 1, 2))) + "\n")


def test_no_warning_where_the_version_is_named_or_the_default() -> None:
    assert _unnamed(OLD, is_named=True) == []
    assert _unnamed(DEFAULT_VERSION) == []


@pytest.mark.parametrize("form", ["with calls", "with a text"])
def test_an_earlier_version_is_no_rolling_restart(form: str) -> None:
    new, old = _compiled(NEW, BEFORE), _compiled(OLD, BEFORE)
    cluster = SimulatedCluster.set_up(new)
    earlier = {"orders": new} if form == "with calls" else {}
    (part,) = plan([old], cluster.snapshot, cluster.records, NO_LIMITS, earlier=earlier).applications
    assert part.notes == (
        f"Kafka Streams 4.3.1 to 3.9.2: a rolling restart is not safe: {NO_DOWNGRADES}",
        "stop all instances, and delete their local state before one starts with the earlier version",
    )


def test_another_patch_is_no_downgrade() -> None:
    new, old = (_compiled(KafkaStreamsVersion(4, 1, patch), BEFORE) for patch in (2, 1))
    cluster = SimulatedCluster.set_up(new)
    (part,) = plan([old], cluster.snapshot, cluster.records, NO_LIMITS, earlier={"orders": new}).applications
    assert part.notes == ("Kafka Streams 4.1.2 to 4.1.1: a rolling restart is safe",)
