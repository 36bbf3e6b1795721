"""Regular expressions of Java: which topics match, and patterns that are refused because of their cost."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.problems import ProblemCode, errors
from tests.compiler.applications import codes, compiled, counts, problems_without_lints

RECORDED = json.loads((Path(__file__).parent / "recorded" / "java_patterns.json").read_text())


def evaluated(text: str) -> list[str] | UntranslatablePatternError:
    try:
        pattern = JavaPattern(text)
        return [topic for topic in RECORDED["topics"] if pattern.matches(topic)]
    except UntranslatablePatternError as reason:
        return reason


@pytest.mark.parametrize("recorded", RECORDED["patterns"], ids=lambda recorded: recorded["pattern"])
def test_patterns_match_what_java_matches(recorded: dict[str, Any]) -> None:
    matched = evaluated(recorded["pattern"])
    if isinstance(matched, UntranslatablePatternError):
        assert matched.is_invalid_java == (recorded["matches"] is None)
    else:
        assert matched == recorded["matches"]


UNSUPPORTED = {
    r"(a)\1": "it has a back reference",
    "(?>a)b": "it has an atomic group",
    "a*+b": "it has a possessive repetition",
    r"\bfoo": "it has a word boundary",
    "(?x)a b": "it is in comment mode (?x)",
    r"\p{IsGreek}": "it has the property \\p{IsGreek}",
    "a{1001}": "it repeats something more than 1000 times",
    "(" * 60 + ")" * 60: "its groups are nested more than 50 deep",
    "(?<=a.*)b": "it has an unbounded look-behind",
}


@pytest.mark.parametrize(("pattern", "reason"), UNSUPPORTED.items())
def test_unsupported_constructs_are_named(pattern: str, reason: str) -> None:
    with pytest.raises(UntranslatablePatternError) as error:
        JavaPattern(pattern)
    assert str(error.value) == reason
    assert not error.value.is_invalid_java


NESTED_REPETITIONS = ["(a+)+b", "(a|a)*b", "(.*a){20}b", "(a|aa)+$b", "((a*)*)*b", ".*.*.*.*.*.*.*.*x"]


@pytest.mark.parametrize("pattern", NESTED_REPETITIONS)
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    started = time.process_time()
    with suppress(UntranslatablePatternError):
        assert not JavaPattern(pattern).matches("a" * 249 + "c")
    assert time.process_time() - started < 2


LONG_NAME = "a" * 100 + "abcdefgh" * 18
COSTLY = [
    "((a{1000}){1000}){1000}",
    "(a{1000}){100}",
    "((a?){0,900}b?){0,900}",
    "(a?b?c?d?e?){200}",
    "(a*)*" * 500,
    "(" * 40 + "a" + "{2})" * 40,
    "[a-z]" * 10_000,
    r"\Qa\E" * 10_000,
]


@pytest.mark.parametrize(
    "pattern",
    [COSTLY[0], *(pytest.param(pattern, marks=pytest.mark.slow) for pattern in COSTLY[1:])],
    ids=lambda pattern: pattern[:30],
)
def test_the_cost_of_a_pattern_is_limited(pattern: str) -> None:
    started = time.process_time()
    with pytest.raises(UntranslatablePatternError, match="it is too complex"):
        JavaPattern(pattern).matches(LONG_NAME)
    assert time.process_time() - started < 5  # most take less than half a second


@pytest.mark.parametrize(
    "pattern",
    [COSTLY[0], *(pytest.param(pattern, marks=pytest.mark.soak) for pattern in COSTLY[1:])],
    ids=lambda pattern: pattern[:30],
)
def test_a_costly_pattern_is_one_problem_of_its_document(pattern: str) -> None:
    text = f"topology: [{{stream: {{pattern: {json.dumps(pattern)}}}}}, {{to: out}}]"
    application = compiled(text, {LONG_NAME: 2, "other": 1})
    assert codes(errors(application.problems)) == [ProblemCode.UNDECIDABLE_PARTITIONS]


def test_optional_repetitions_match() -> None:
    pattern = JavaPattern("(a?){0,200}b")
    assert pattern.matches("a" * 200 + "b")
    assert not pattern.matches("a" * 201 + "b")
    assert JavaPattern("x{0,300}y").matches("x" * 240 + "y")


PATTERN = "topology: [{stream: {pattern: 'src-.*'}}, {groupBy: {name: by}}, {count: {materialized: counts}}]"


def test_a_pattern_reads_all_matching_topics() -> None:
    application = compiled(PATTERN, {"src-a": 2, "src-b": 5, "other": 9, "__consumer_offsets": 50})
    assert application.external_sources == ("src-a", "src-b")
    assert application.source_patterns == ("src-.*",)
    assert counts(application) == {"by-repartition": 5, "counts-changelog": 5}
    assert problems_without_lints(application) == ()


def test_a_pattern_that_matches_nothing_leaves_counts_undecided() -> None:
    application = compiled(PATTERN, {"other": 9})
    assert application.internal_topics == ()
    assert codes(problems_without_lints(application)) == [ProblemCode.UNDECIDABLE_PARTITIONS]
    assert problems_without_lints(application)[0].topic == "app-by-repartition"


def test_a_pattern_that_matches_the_own_internal_topics_is_reported() -> None:
    text = (
        "topology: [{stream: {pattern: 'in|app-.*'}}, {groupBy: {name: by}}, {count: {materialized: counts}}]"
    )
    application = compiled(text, {"in": 2, "app-by-repartition": 2})
    assert ProblemCode.INVALID_TOPOLOGY in codes(problems_without_lints(application))
    assert problems_without_lints(application)[0].topic == "app-by-repartition"


def test_a_topic_that_two_patterns_match_is_an_error() -> None:
    text = (
        "topology: [{stream: {pattern: 'a.*', as: a}}, {to: {topic: x}}, {stream: {pattern: '.*b', as: b}}]"
    )
    application = compiled(text, {"a1": 1, "ab": 1})
    assert [(p.code, p.topic) for p in problems_without_lints(application)] == [
        (ProblemCode.INVALID_TOPOLOGY, "ab")
    ]
