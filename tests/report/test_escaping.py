"""Texts of other people in terminals, logs of pipelines and Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from headwater.model.problems import Location, Problem, ProblemCode
from headwater.report import problems_text
from headwater.report.markdown import code_block, code_span, printable, without_command
from headwater.report.problems import github_annotations

_PIECES = st.sampled_from(
    [
        "::",
        "##",
        "##[",
        "##vso[",
        "]",
        "error",
        "stop-commands",
        " ",
        "\t",
        "\n",
        "\r",
        "x" * 40,
        "`",
        "\x1b[",
    ]
)
_TEXTS = st.lists(_PIECES, max_size=12).map("".join)


def is_command(line: str) -> bool:
    """Return whether a pipeline executes a line of its log.

    GitHub: actions/runner, `ActionCommand.TryParseV2` and `TryParse`. Azure Pipelines: `Command.TryParse`.
    """
    start = line.lstrip()
    return (start.startswith("::") and "::" in start[2:]) or bool(re.search(r"##(vso)?\[.*\]", line))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::stop-commands::x", "\\x3a:stop-commands::x"),
        ("  ::error file=a::x", "  \\x3a:error file=a::x"),
        ("\n::error::x", " \\x3a:error::x"),
        ("found ##[error]x", "found \\x23#[error]x"),
        ("##vso[task.setvariable variable=a]b", "\\x23#vso[task.setvariable variable=a]b"),
        ("::1", "::1"),
        ("orders::counts ## a[0]", "orders::counts ## a[0]"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}a\x1b[31m", "\\u202ea\\x1b[31m"),
    ],
)
def test_a_line_is_neither_a_command_nor_control_characters(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert not is_command(shown)


@given(_TEXTS)
def test_no_line_is_a_command(text: str) -> None:
    assert not is_command(printable(text))
    assert without_command(printable(text)) == printable(text)


@given(st.lists(_TEXTS, max_size=4).map("\n".join))
def test_no_line_of_a_code_block_is_a_command(text: str) -> None:
    assert not [line for line in code_block(text).split("\n") if is_command(line)]


@given(st.lists(_TEXTS, min_size=6, max_size=6))
def test_no_line_of_a_problem_is_a_command(texts: list[str]) -> None:
    summary, application, topic, found, why, fix = texts
    problem = Problem(
        code=ProblemCode.TIMEOUT,
        summary=summary,
        application=application,
        topic=topic,
        found=found,
        why=why,
        fix=fix,
        location=Location(topic, 1, 1, found),
    )
    assert not [line for line in problems_text([problem]).splitlines() if is_command(line)]
    (annotation, *others) = github_annotations([problem]).splitlines()
    assert annotation.startswith("::error ")
    assert not others


@given(st.text(alphabet="`|\\<>&*_[]()~#@\n a", max_size=30))
def test_code_in_a_cell_of_a_table_is_one_cell_with_the_text(text: str) -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(f"|a|b|\n|-|-|\n|{code_span(text)}|x|\n")
    cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    assert cells[1:] == ["x"]
    assert re.fullmatch(r"<code>[^<]*</code>", cells[0])
