"""What an upgrade changes: names, settings, state, and whether a rolling restart is safe."""

import attrs

from headwater.compiler import compile_documents
from headwater.model.problems import ProblemCode, Severity
from headwater.model.versions import DEFAULT_VERSION, SUPPORTED
from headwater.planner.upgrade import State, find_upgrade
from tests.upgrade.upgrade_cases import (
    COUNT,
    FLAG,
    JOINS,
    MERGED,
    NO_STATE,
    PLAIN,
    STORE_ADDED_AGAIN,
    TO,
    UNKNOWN_COUNTS,
    only,
    upgrade,
)


def test_an_application_without_differences_keeps_its_state_and_can_be_restarted_one_by_one() -> None:
    found = only(PLAIN)

    assert (found.changes, found.state, found.is_rolling) == ((), State.KEPT, True)
    assert only(NO_STATE).state is State.NONE


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


def test_a_fix_that_the_new_release_does_not_have_yet_loses_the_state_of_a_shared_store() -> None:
    found = only(STORE_ADDED_AGAIN)

    assert (found.changes[0].topic, found.changes[0].state) == ("again-seen-changelog", State.LOST)
    assert found.state is State.LOST
    assert not found.is_rolling


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
            [attrs.evolve(COUNT, application=attrs.evolve(COUNT.application, kafka_streams=version))],
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
    (compiled,) = compile_documents([COUNT], {"orders": 2})
    old = [attrs.evolve(compiled, is_observed=True)]

    assert find_upgrade(old, old, compiled.application.kafka_streams).problems == ()


def test_an_application_that_names_no_version_is_compared_as_the_default_one_with_a_warning() -> None:
    found = upgrade(PLAIN.replace(', kafkaStreams: "4.1"', ""), to=str(DEFAULT_VERSION))

    (problem,) = found.problems
    assert (problem.code, problem.severity) == (ProblemCode.MISSING_DETAIL, Severity.WARNING)
    assert problem.summary == "plain names no version of Kafka Streams."
    assert [part.id for part in found.applications] == ["plain"]
