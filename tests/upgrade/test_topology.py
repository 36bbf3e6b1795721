"""What another version of Kafka Streams does to the topics, tasks and groups of an application."""

import time

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.model.cluster import LiveGroup
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import Location, Severity
from headwater.planner.upgrade import Change, ChangeKind, State, find_upgrade
from tests.upgrade.upgrade_cases import (
    COUNT,
    GLOBAL,
    JOINS,
    MERGED,
    TO,
    cluster,
    kinds,
    only,
)

AT = Location("app.yaml", 7, 5)
_COMPILED = compile_document(COUNT, {"orders": 2})
(_TOPIC,) = _COMPILED.internal_topics


def synthetic(before: InternalTopic | None, after: InternalTopic | None) -> Change:
    """Return the change of topics between two versions that differ in one topic only."""
    old, new = (_with_topics(topic) for topic in (before, after))
    (application,) = find_upgrade([old], [new], TO).applications
    (change,) = (each for each in application.changes if each.topic is not None)
    assert application.state is (change.state or State.NONE)
    return change


def _with_topics(topic: InternalTopic | None) -> CompiledApplication:
    return attrs.evolve(_COMPILED, internal_topics=(topic,) if topic is not None else ())


def changelog(name: str, at: Location | None = AT) -> InternalTopic:
    return attrs.evolve(_TOPIC, name=f"app-{name}-changelog", node=name, at=at)


def test_merged_repartition_topics_drop_one_and_need_a_stop() -> None:
    found = only(MERGED)

    assert kinds(found) == ["dropped-topic", "sub-topologies", "nodes"]
    assert found.changes[0].severity is Severity.ERROR
    assert "`repartition`" in found.changes[0].first
    assert not found.is_rolling


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
