"""Names, retention and settings that Kafka Streams or brokers refuse, or that have no effect."""

import pytest

from headwater.model.problems import ProblemCode, Severity, errors
from tests.compiler.applications import codes, compiled, problems_without_lints, topic, windowed_count


@pytest.mark.parametrize(
    "window",
    [
        "tumbling: {size: 9223372036854775000, grace: 10000}",
        "sliding: {difference: 9223372036854775000}",
        "session: {gap: 9223372036854775805, grace: 5}",
    ],
)
def test_a_retention_that_does_not_fit_into_a_long_is_an_error(window: str) -> None:
    application = compiled(windowed_count(window), {"in": 1})
    assert "IllegalArgumentException" in problems_without_lints(application)[0].why
    assert not errors(
        compiled(windowed_count("session: {gap: 9223372036854775805, grace: 2}"), {"in": 1}).problems
    )


def test_settings_that_kafka_streams_computes_are_reported() -> None:
    config = "topic.retention.ms: 90000000, topic.min.compaction.lag.ms: 5"
    computed = compiled(windowed_count("tumbling: {size: 1h}", config=config), {"in": 1})
    assert problems_without_lints(computed) == ()  # equal to the computed value, and no versioned store
    other = compiled(windowed_count("tumbling: {size: 1h}", config="topic.retention.ms: 5"), {"in": 1})
    (warning,) = problems_without_lints(other)
    assert (warning.code, warning.severity) == (ProblemCode.CONFIG_HAS_NO_EFFECT, Severity.WARNING)
    assert warning.found == "retention.ms 90000000 (counts)"
    assert topic(other, "counts-changelog").config["retention.ms"] == "90000000"


def test_invalid_topic_names_are_errors() -> None:
    text = (
        f"topology: [{{stream: {{topic: in}}}}, {{repartition: {{name: {'n' * 240}}}}}, {{to: {{topic: o}}}}]"
    )
    application = compiled(text, {"in": 1})
    assert codes(problems_without_lints(application)) == [ProblemCode.INVALID_NAME]
    assert problems_without_lints(application)[0].found == "it has 256 characters"
    spaced = "topology: [{stream: {topic: in}}, {repartition: {name: a b}}, {to: {topic: o}}]"
    assert ProblemCode.INVALID_NAME in codes(problems_without_lints(compiled(spaced, {"in": 1})))


_ADDED_AGAIN = """
application: {id: app, kafkaStreams: %s}
topology:
  - addReadOnlyStateStore: {store: {name: prices, shared: true}, topic: a, sourceName: s, name: p}
  - addSource: {name: t, topic: b}
  - addProcessor: {name: q, parents: [t], stores: [{name: prices, shared: true}]}
"""
_CONNECTED_FIRST = """
application: {id: app, kafkaStreams: %s}
topology:
  - addSource: {name: t, topic: b}
  - addProcessor: {name: q, parents: [t], stores: [{name: prices, shared: true}]}
  - addReadOnlyStateStore: {store: {name: prices, shared: true}, topic: a, sourceName: s, name: p}
"""


@pytest.mark.parametrize("text", [_ADDED_AGAIN, _CONNECTED_FIRST])
def test_a_read_only_store_that_another_subtopology_uses_is_a_warning(text: str) -> None:
    (warning,) = compiled(text % "4.3.1", {"a": 3, "b": 3}).problems
    assert (warning.code, warning.severity) == (ProblemCode.INVALID_TOPOLOGY, Severity.WARNING)
    assert warning.summary == "Store prices is filled from topic a, but not for q."
    assert compiled(text % "4.2.2", {"a": 3, "b": 3}).problems == ()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_the_topic_of_a_read_only_store_needs_a_partition_for_each_task_that_has_it_as_changelog(
    protocol: str,
) -> None:
    text = _ADDED_AGAIN.replace("id: app", f"id: app, protocol: {protocol}")
    (error,) = errors(compiled(text % "4.3.1", {"a": 3, "b": 5}).problems)
    assert (error.code, error.topic, error.found) == (ProblemCode.CONFLICTING_PARTITIONS, "a", "3")
    assert not errors(compiled(_CONNECTED_FIRST % "4.3.1", {"a": 3, "b": 5}).problems)


def test_a_store_builder_that_is_added_once_is_filled_for_all_its_processors() -> None:
    once = _ADDED_AGAIN.replace(", stores: [{name: prices, shared: true}]", "")
    once += "  - connectProcessorAndStateStores: {processor: q, stores: [prices]}\n"
    assert compiled(once % "4.3.1", {"a": 3, "b": 5}).problems == ()
