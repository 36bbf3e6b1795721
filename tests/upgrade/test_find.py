"""What an upgrade changes: names, settings, state, and whether a rolling restart is safe."""

import time

import attrs
import pytest

from headwater.compiler import compile_document, compile_documents
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import Location, ProblemCode, Severity
from headwater.model.versions import DEFAULT_VERSION, SUPPORTED
from headwater.planner.upgrade import ApplicationUpgrade, Change, ChangeKind, State, find_upgrade
from tests.compiler.applications import document
from tests.upgrade.upgrade_cases import (
    FLAG,
    GLOBAL,
    JOINS,
    MERGED,
    NO_STATE,
    PLAIN,
    STORE_ADDED_AGAIN,
    UNKNOWN_COUNTS,
    upgrade,
)

TO = SUPPORTED[-1]
AT = Location("app.yaml", 7, 5)
_DOCUMENT = document("topology: [{stream: orders}, {groupByKey: {}}, {count: {materialized: s}}]")
_DOCUMENT = attrs.evolve(_DOCUMENT, application=attrs.evolve(_DOCUMENT.application, names_version=True))
_COMPILED = compile_document(_DOCUMENT, {"orders": 2})
(_TOPIC,) = _COMPILED.internal_topics


def only(*texts: str, to: str = "4.3", snapshot: ClusterSnapshot | None = None) -> ApplicationUpgrade:
    (found,) = upgrade(*texts, to=to, snapshot=snapshot).applications
    return found


def kinds(found: ApplicationUpgrade) -> list[str]:
    return [change.kind.value for change in found.changes]


def cluster(*topics: str) -> ClusterSnapshot:
    return ClusterSnapshot(
        "a-cluster",
        1,
        {name: LiveTopic(name, "", 3, 1) for name in topics},
        {"merged": LiveGroup("merged", "Stable", 2)},
    )


def synthetic(before: InternalTopic | None, after: InternalTopic | None) -> Change:
    """Return the one change of topics between two versions that differ in one topic only."""
    old, new = (_with_topics(topic) for topic in (before, after))
    (application,) = find_upgrade([old], [new], TO).applications
    (change,) = (each for each in application.changes if each.topic is not None)
    assert application.state is (change.state or State.NONE)
    return change


def _with_topics(topic: InternalTopic | None) -> CompiledApplication:
    return attrs.evolve(_COMPILED, internal_topics=(topic,) if topic is not None else ())


def changelog(name: str, at: Location | None = AT) -> InternalTopic:
    return attrs.evolve(_TOPIC, name=f"app-{name}-changelog", node=name, at=at)


def test_an_application_without_differences_keeps_its_state_and_can_be_restarted_one_by_one() -> None:
    found = only(PLAIN)

    assert (found.changes, found.state, found.is_rolling) == ((), State.KEPT, True)
    assert only(NO_STATE).state is State.NONE


def test_merged_repartition_topics_drop_one_and_need_a_stop() -> None:
    found = only(MERGED)

    assert kinds(found) == ["dropped-topic", "sub-topologies", "nodes"]
    assert found.changes[0].severity is Severity.ERROR
    assert "`repartition`" in found.changes[0].first
    assert not found.is_rolling


def test_the_advice_to_repartition_explicitly_keeps_the_topics() -> None:
    text = MERGED.replace(
        "  - groupByKey: {from: merged}\n  - reduce:",
        "  - repartition: {from: merged, name: latest}\n  - groupByKey: {}\n  - reduce:",
    )
    assert text != MERGED

    assert [change.kind for change in only(text).changes if change.topic is not None] == []


def test_the_advice_to_remove_the_flag_keeps_the_topics() -> None:
    assert "Remove the config `__enable.process.processValue.fix__`" in only(FLAG).changes[0].first

    assert only(FLAG.replace(", __enable.process.processValue.fix__: true", "")).changes == ()


def test_a_dropped_topic_that_does_not_exist_has_no_data_to_lose() -> None:
    found = only(MERGED, snapshot=cluster("plain", "keyed"))

    assert found.changes[0].kind is ChangeKind.DROPPED_TOPIC
    assert found.changes[0].severity is Severity.INFO
    assert found.changes[0].first == "Nothing: the topic does not exist on this cluster."
    existing = only(MERGED, snapshot=cluster("plain", "keyed", "merged-latest-repartition"))
    assert existing.changes[0].severity is Severity.ERROR
    assert existing.group == LiveGroup("merged", "Stable", 2)


def test_other_settings_lose_nothing() -> None:
    found = only(JOINS)

    assert [(change.kind, change.severity, change.state) for change in found.changes] == [
        (ChangeKind.CONFIG, Severity.INFO, State.KEPT)
    ] * 2
    assert found.is_rolling
    assert found.changes[0].before == "cleanup.policy=delete"
    assert found.changes[0].after == "cleanup.policy=compact,delete"


def test_settings_do_not_change_between_versions_before_4_3() -> None:
    assert only(JOINS, to="4.2").changes == ()


def test_a_topology_that_the_new_version_refuses_is_an_error() -> None:
    found = only(GLOBAL)

    assert kinds(found) == ["refused"]
    assert found.obstacle == "the new version does not start"


@pytest.mark.parametrize("at", [AT, None])
def test_a_renamed_changelog_is_lost_state(at: Location | None) -> None:
    old, new = changelog("STATE-STORE-0000000001", at), changelog("STATE-STORE-0000000004", at)
    change = synthetic(
        attrs.evolve(old, generated=True),
        attrs.evolve(new, generated=True),
    )

    assert (change.kind, change.severity, change.state) == (
        ChangeKind.RENAMED_TOPIC,
        Severity.ERROR,
        State.LOST,
    )
    assert change.after == "app-STATE-STORE-0000000004-changelog"
    assert "name the store exactly `STATE-STORE-0000000001`" in change.first


def test_a_changelog_of_another_call_is_not_the_same_store() -> None:
    old = _with_topics(changelog("mine"))
    new = _with_topics(changelog("others", attrs.evolve(AT, line=9)))

    (application,) = find_upgrade([old], [new], TO).applications

    assert kinds(application) == ["dropped-topic", "added-topic"]
    assert application.state is State.LOST


def test_a_source_topic_that_serves_as_changelog_restores_the_store() -> None:
    old = _with_topics(changelog("s"))
    (part,) = old.subtopologies
    new = attrs.evolve(
        old,
        internal_topics=(),
        subtopologies=(attrs.evolve(part, source_changelogs=("orders",), changelog_topics=()),),
    )

    (application,) = find_upgrade([old], [new], TO).applications

    assert application.state is State.REBUILT
    assert application.changes[0].after == "source topic orders"
    assert application.changes[0].severity is Severity.WARNING
    assert not application.is_rolling


def test_a_fix_that_the_new_release_does_not_have_yet_loses_the_state_of_a_shared_store() -> None:
    found = only(STORE_ADDED_AGAIN)

    assert (found.changes[0].topic, found.changes[0].state) == ("again-seen-changelog", State.LOST)
    assert found.state is State.LOST
    assert not found.is_rolling


def test_another_number_of_partitions_needs_a_reset() -> None:
    old = changelog("s")
    change = synthetic(old, attrs.evolve(old, partitions=5))

    assert (change.kind, change.before, change.after) == (
        ChangeKind.PARTITIONS,
        "2 partitions",
        "5 partitions",
    )
    assert change.state is State.LOST


def test_other_co_partition_groups_are_reported() -> None:
    old = _with_topics(None)
    new = attrs.evolve(old, copartition_groups=(("clicks", "orders"),))

    (application,) = find_upgrade([old], [new], TO).applications

    assert kinds(application) == ["co-partitioning"]
    assert application.changes[0].after == "clicks = orders"


def test_an_application_with_errors_is_not_compared() -> None:
    found = upgrade(UNKNOWN_COUNTS, PLAIN)

    assert [problem.code for problem in found.problems] == [ProblemCode.MISSING_SOURCE_TOPIC]
    assert [part.id for part in found.applications] == ["plain"]


def test_a_downgrade_is_not_compared() -> None:
    found = upgrade(PLAIN, to="3.9")

    assert [problem.code for problem in found.problems] == [ProblemCode.UNSUPPORTED_VERSION]
    assert found.applications == ()


def test_the_removal_of_transform_values_is_noted_only_where_repartitions_are_merged() -> None:
    from_3_9 = MERGED.replace('"4.2"', '"3.9"')

    assert "KAFKA-19668" in only(from_3_9, to="4.0").notes[1]
    assert len(only(JOINS, to="4.0").notes) == 1
    assert only(PLAIN).notes == ()


def test_retired_applications_are_left_out() -> None:
    assert upgrade(PLAIN.replace("id: plain", "id: plain, lifecycle: retired")).applications == ()


def test_only_topics_rule_out_nothing_that_depends_on_operators() -> None:
    before, after = (
        compile_documents(
            [attrs.evolve(_DOCUMENT, application=attrs.evolve(_DOCUMENT.application, kafka_streams=version))],
            {"orders": 2},
        )
        for version in (SUPPORTED[5], TO)
    )

    found = find_upgrade([attrs.evolve(each, is_observed=True) for each in before], after, TO)

    (problem,) = found.problems
    assert "KAFKA-20264 (4.3.0)" in problem.why
    assert "KIP-1071" not in problem.why
    assert not found.applications[0].is_rolling
    assert find_upgrade(before, after, TO).problems == ()


def test_a_described_text_is_enough_where_the_versions_build_the_same() -> None:
    (compiled,) = compile_documents([_DOCUMENT], {"orders": 2})
    old = [attrs.evolve(compiled, is_observed=True)]

    assert find_upgrade(old, old, compiled.application.kafka_streams).problems == ()


def test_an_application_that_names_no_version_is_compared_as_the_default_one_with_a_warning() -> None:
    found = upgrade(PLAIN.replace(', kafkaStreams: "4.1"', ""), to=str(DEFAULT_VERSION))

    (problem,) = found.problems
    assert (problem.code, problem.severity) == (ProblemCode.MISSING_DETAIL, Severity.WARNING)
    assert problem.summary == "plain names no version of Kafka Streams."
    assert [part.id for part in found.applications] == ["plain"]


def test_thousands_of_renamed_topics_are_compared_in_less_than_a_second() -> None:
    made = _with_topics(None)
    many = 5_000
    old, new = (
        attrs.evolve(
            made,
            internal_topics=tuple(
                changelog(f"{prefix}-{number}", Location("app.yaml", number)) for number in range(1, many)
            ),
        )
        for prefix in ("before", "after")
    )
    started = time.process_time()

    (application,) = find_upgrade([old], [new], TO).applications

    assert time.process_time() - started < 1
    assert {change.kind for change in application.changes} == {ChangeKind.RENAMED_TOPIC}
    assert len(application.changes) == many - 1
