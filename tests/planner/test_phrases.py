"""Phrases of texts: counts, durations and lists of names."""

import pytest

from headwater.model.problems import ProblemCode
from headwater.planner.phrases import (
    config_text,
    count_phrase,
    counted,
    duration_phrase,
    explain_milliseconds,
    few_names,
    lines_of_problems,
    listed,
    seconds_phrase,
    summary_phrase,
)
from headwater.spec import load_text


@pytest.mark.parametrize(
    "value",
    ["compact", "compact,delete", "-1", "60000", "0.5", "0:101", "*", "true", "", "a: {b} # 'c' \"d\""],
)
def test_a_setting_that_is_printed_is_read_as_it_is(value: str) -> None:
    config = {"leader.replication.throttled.replicas": value, "segment.ms": "1"}
    topic = f"a-changelog: {{kind: changelog, partitions: 1, {config_text(config)}}}"
    text = f"application: {{id: app}}\nobserved: {{topics: {{{topic}}}, unknown: [subtopologies]}}\n"
    loaded = load_text(text, "app.yaml")
    assert loaded.problems == ()
    observed = loaded.documents[0].observed
    assert observed is not None
    assert [dict(each.config or {}) for each in observed.topics] == [config]


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 topics"), (1, "1 topic"), (2, "2 topics"), (1_234, "1,234 topics")]
)
def test_a_count_has_the_number_of_its_noun(number: int, text: str) -> None:
    assert counted(number, "topic") == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(7, "7"), (999_999, "999,999"), (1_000_000, "1.0 million"), (12_340_000, "12.3 million")],
)
def test_large_counts_are_in_millions(number: int, text: str) -> None:
    assert count_phrase(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 second"),
        (40.4, "40 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "120 minutes"),
        (9_000, "2.5 hours"),
    ],
)
def test_an_estimate_is_in_the_largest_unit_that_has_two(seconds: float, text: str) -> None:
    assert seconds_phrase(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        ("90000000", "90000000 (25 hours)"),
        ("86400000", "86400000 (1 day)"),
        ("1000", "1000 (1 second)"),
        ("90300000", "90300000 (25 hours and 5 minutes)"),
        ("1500", "1500"),
        ("0", "0"),
        ("-1", "-1 (no limit)"),
        ("soon", "soon"),
    ],
)
def test_a_duration_is_followed_by_its_meaning(milliseconds: str, text: str) -> None:
    assert explain_milliseconds(milliseconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (1, "1 ms"),
        (9_999, "9,999 ms"),
        (12_345, "12 seconds and 345 ms"),
        (99_000, "99 seconds"),
        (100_000, "1 minute and 40 seconds"),
        (7_200_000, "2 hours"),
        (90_300_000, "25 hours and 5 minutes"),
        (360_000_000, "4 days and 4 hours"),
        (100_000_000, "27 hours, 46 minutes and 40 seconds"),
        (8_640_000_000, "100 days"),
        (-1, "-1 ms"),
    ],
)
def test_a_duration_has_the_units_that_are_easiest_to_read(milliseconds: int, text: str) -> None:
    assert duration_phrase(milliseconds) == text


def test_names_are_sorted_and_only_the_first_ones_are_shown() -> None:
    names = [f"topic-{number:02}" for number in range(12)]
    assert listed(["b", "a"]) == "a, b"
    assert few_names(names[:10]) == listed(names[:10])
    assert few_names(names) == f"{listed(names[:10])} and 2 more"


def test_a_fix_of_several_problems_is_said_once() -> None:
    of_topics = [("A", f"A: {number}.", "Wait.") for number in range(3)]
    problems = [("A", "A: one.", "Fix it."), ("B", "B: two.", ""), *of_topics]

    lines = ["A: one. Fix it.", "B: two.", "A: 0.", "A: 1.", "A: 2.", "A: Wait."]
    assert [*lines_of_problems(problems)] == lines
    assert [*lines_of_problems(problems, 2)] == [*lines[:4], "A: and 1 more problem", "A: Wait."]


@pytest.mark.parametrize(
    ("code", "found", "text"),
    [
        (
            ProblemCode.NOT_AUTHORIZED,
            "TOPIC_AUTHORIZATION_FAILED",
            "It failed. Found: TOPIC_AUTHORIZATION_FAILED.",
        ),
        ("RequestNotAnswered", "none in time.", "It failed. Found: none in time."),
        (ProblemCode.JOURNAL_NOT_FOUND, "no such topic", "It failed. Found: no such topic."),
        (ProblemCode.CLUSTER_UNREACHABLE, None, "It failed."),
        (ProblemCode.OVER_PARTITIONED, "8 partitions", "It failed."),
    ],
)
def test_a_failed_request_is_followed_by_what_was_found(code: str, found: str | None, text: str) -> None:
    assert summary_phrase(code, "It failed.", found) == text
