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
