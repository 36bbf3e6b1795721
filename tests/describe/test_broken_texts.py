"""Texts of `Topology#describe()` that are damaged, cut or hostile: each is a problem with its line."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.describe import read_description
from headwater.model.problems import ProblemCode
from tests.describe.texts import SMALL, recorded_texts

LINES = SMALL.splitlines()


def without(line: int) -> str:
    return "\n".join(LINES[: line - 1] + LINES[line:])


def changed(line: int, text: str) -> str:
    return "\n".join([*LINES[: line - 1], text, *LINES[line:]])


BROKEN = {
    "nothing at all": ("", 0, "a line `Topologies:`"),
    "another text": ("Hello\nworld\n", 0, "a line `Topologies:`"),
    "children missing": (without(4), 3, "a line `--> …` after it"),
    "parents missing": (without(7), 5, "a line `<-- …` after it"),
    "node missing": (
        "\n".join(LINES[:4] + LINES[7:]),
        3,
        "a line for KSTREAM-KEY-SELECT-0000000001",
    ),
    "incomplete node line": (changed(5, "    Processor: KSTREAM-KEY"), 5, "Processor: <name> (stores: […])"),
    "incomplete arrow": (changed(4, "      -->"), 4, "--> <names>"),
    "first block missing": ("\n".join([LINES[0], *LINES[13:]]), 2, "Sub-topology: 0"),
    "one-sided link": (
        changed(7, "      <-- KSTREAM-FILTER-0000000005"),
        5,
        "KSTREAM-SOURCE-0000000000 in the list `<--` of KSTREAM-KEY-SELECT-0000000001",
    ),
    "node before its block": (
        "\n".join([LINES[0], *LINES[2:]]),
        2,
        "a line `Sub-topology: 0` before the first node",
    ),
    "two lists": (changed(7, LINES[5]), 7, "one list of that kind for KSTREAM-KEY-SELECT-0000000001"),
}


@pytest.mark.parametrize(("text", "line", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_problems_have_line_and_expectation(text: str, line: int, expected: str) -> None:
    _, problems = read_description(text, "app.txt")
    assert (line, expected) in [(p.location.line, p.expected) for p in problems if p.location is not None]
    assert {problem.code for problem in problems} == {ProblemCode.UNREADABLE_DESCRIBE}
    assert all(problem.fix and problem.why and problem.found for problem in problems)


def test_a_text_cut_within_its_nodes_is_a_problem() -> None:
    text = recorded_texts()["everything_opt_none"]
    lines = text.splitlines()
    for end in range(2, len(lines) - 1):
        if lines[end].startswith("  Sub-topology") or not lines[end].strip():
            continue
        _, problems = read_description("\n".join(lines[:end]))
        assert problems, end


@given(st.text(alphabet="STPS:ourceinkogylb-() []<>,\n0\\nt|", max_size=300))
def test_no_text_raises(text: str) -> None:
    read_description(text)


@given(st.data())
def test_no_damaged_text_raises(data: st.DataObject) -> None:
    text = SMALL
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + data.draw(st.text(max_size=3)) + text[start + data.draw(st.integers(0, 30)) :]
    read_description(text)


HOSTILE = {
    "one line of keywords": "Source: " * 500_000,
    "one line of arrows": "--> " * 1_000_000,
    "first lines": "Topologies:\n" * 50_000,
    "open extractors": "Sub-topology: 0\n" + "Sink: s (extractor class: \n" * 30_000,
    "a list of unknown names": "Sub-topology: 0\nSource: s, x (topics: [a])\n--> " + "n, " * 100_000,
    "unlinked nodes": "Sub-topology: 0\n"
    + "".join(f"Processor: p{i} (stores: [])\n--> q{i}\n<-- p{i - 1}\n" for i in range(10_000)),
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=[] if name == "unlinked nodes" else [pytest.mark.slow])
        for name, text in HOSTILE.items()
    ],
)
def test_hostile_texts_take_linear_time_and_have_few_problems(text: str) -> None:
    started = time.process_time()
    _, problems = read_description(text)
    assert time.process_time() - started < 10
    assert len(problems) <= 101


def test_a_text_that_is_too_large_is_not_read() -> None:
    started = time.process_time()
    _, problems = read_description("x" * 9_000_000)
    assert [problem.code for problem in problems] == [ProblemCode.DOCUMENT_TOO_LARGE]
    assert time.process_time() - started < 1
