"""The text of problems, for any content."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity
from headwater.report import problem_text, problems_text
from headwater.report.problems import code_quality, github_annotations, problems_rich

_TEXT = st.text(max_size=300)
_PROBLEMS = st.builds(
    Problem,
    code=st.sampled_from(ProblemCode),
    summary=_TEXT,
    application=st.none() | _TEXT,
    topic=st.none() | _TEXT,
    node=st.none() | _TEXT,
    expected=st.none() | _TEXT,
    found=st.none() | _TEXT,
    why=_TEXT,
    fix=_TEXT,
    location=st.none() | st.builds(Location, _TEXT, st.integers(0, 99), st.integers(0, 99), _TEXT),
    severity=st.sampled_from(Severity),
)


def problem(summary: str = "Something is wrong.", **fields: object) -> Problem:
    return Problem(**{"code": ProblemCode.TIMEOUT, "summary": summary, **fields})  # type: ignore[arg-type]


def test_expected_is_above_found() -> None:
    lines = problem_text(problem(expected="4 partitions", found="8 partitions")).splitlines()
    assert lines == [
        "error[Timeout] Something is wrong.",
        "  expected  4 partitions",
        "  found     8 partitions",
    ]


def test_location_can_be_opened_by_editors() -> None:
    text = problem_text(problem(location=Location("a/b.yaml", 3, 7, "/topology/0/stream")))
    assert "  at        a/b.yaml:3:7 (/topology/0/stream)" in text


def test_topic_in_the_headline_is_not_repeated() -> None:
    assert "topic" not in problem_text(problem("Topic-less t-1.", topic="t-1")).splitlines()[-1][:12]
    assert "  topic     t-2" in problem_text(problem(topic="t-2"))


def test_long_names_are_not_broken() -> None:
    name = "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition" * 3
    assert name in problem_text(problem(why=f"Check {name} now."))


def test_problems_are_grouped_by_application_and_counted() -> None:
    text = problems_text(
        [
            problem("First of b.", application="b"),
            problem("Of all.", severity=Severity.WARNING),
            problem("Of a.", application="a"),
            problem("Second of b.", application="b", severity=Severity.INFO),
        ]
    )
    order = [
        text.index(part) for part in ("Of all.", "\na\n", "Of a.", "\nb\n", "First of b.", "Second of b.")
    ]
    assert order == sorted(order)
    assert text.endswith("2 errors, 1 warning, 1 hint")


@given(_PROBLEMS)
def test_control_characters_and_line_breaks_are_escaped(made: Problem) -> None:
    lines = problem_text(made).split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith(f"{made.severity.value}[{made.code}]")
    assert all(line.startswith("  ") for line in lines[1:])


@given(st.lists(_PROBLEMS, max_size=5))
def test_all_problems_are_printed(made: list[Problem]) -> None:
    text = problems_text(made)
    assert text.count("[") >= len(made)


def test_of_too_many_problems_errors_are_shown_first() -> None:
    hints = [problem(f"Hint {number}.", severity=Severity.INFO) for number in range(5)]
    text = problems_rich([*hints, problem("Error.")], most=2).plain
    assert text.splitlines()[0] == "error[Timeout] Error."
    assert "Hint 0." in text
    assert "Hint 1." not in text
    assert text.endswith("1 error, 5 hints; 4 of them are not shown")
    assert problems_rich(hints, most=5).plain == problems_text(hints)


def test_the_exception_says_how_to_fix_each_problem() -> None:
    first = problem("Topic a does not exist.", fix="Run `pulumi up`.")
    second = problem("Topic b does not exist.", fix="Create it.", code=ProblemCode.MISSING_SOURCE_TOPIC)
    assert str(ProblemsError([first, second])) == (
        "Timeout: Topic a does not exist. Run `pulumi up`.\n"
        "MissingSourceTopic: Topic b does not exist. Create it."
    )


_CONTROL = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
"""Control characters and marks that change the direction of a text, without line breaks."""
_SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


@given(st.lists(_PROBLEMS, max_size=5))
def test_a_code_quality_report_follows_gitlabs_schema_for_any_text(problems: list[Problem]) -> None:
    entries = json.loads(json.dumps(code_quality(problems, "./topologies/shop.yaml")))
    assert len({entry["fingerprint"] for entry in entries}) == len(problems)
    for entry in entries:
        assert set(entry) == {"check_name", "description", "severity", "fingerprint", "location"}
        assert entry["severity"] in _SEVERITIES
        assert entry["location"]["path"] not in ("", ".")
        assert not entry["location"]["path"].startswith("./")
        assert entry["location"]["lines"]["begin"] >= 1
        assert not _CONTROL.search(entry["description"])


def test_a_problem_without_a_location_has_a_path_of_the_repository() -> None:
    (entry,) = code_quality([problem()], "./topologies/shop.yaml")
    assert entry["location"] == {"path": "topologies/shop.yaml", "lines": {"begin": 1}}


@given(st.lists(_PROBLEMS, min_size=1, max_size=5))
def test_each_annotation_is_one_line_without_control_characters(problems: list[Problem]) -> None:
    lines = github_annotations(problems).split("\n")
    assert len(lines) == len(problems) + 1
    assert all(line.startswith("::") for line in lines[:-1])
    messages = [line.split("::", 2)[2] for line in lines[:-1]]
    assert not any(map(_CONTROL.search, messages))
