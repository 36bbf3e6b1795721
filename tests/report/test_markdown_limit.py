"""Markdown within the length limit of forges: whole rows, closed code blocks, a sentence about the rest."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.report.markdown import LIMIT, code_block, shorten_markdown


def document(rows: int, width: int = 20) -> str:
    return "**Summary**\n\n| a | b |\n|---|---|\n" + "".join(
        f"| {number} | {'x' * width} |\n" for number in range(rows)
    )


def test_a_short_document_is_unchanged() -> None:
    assert shorten_markdown(lambda _rows: document(7), "headwater drift") == document(7)


def test_tables_get_fewer_rows_before_the_end_is_left_out() -> None:
    def write(rows: int | None) -> str:
        return document(10_000 if rows is None else rows) + "\nThe end."

    text = shorten_markdown(write, "headwater drift --format html")
    assert "The end." in text
    assert "| 99 |" in text
    assert "tables have at most 100 rows, because" in text
    assert "`headwater drift --format html` shows all" in text


def test_a_cut_document_closes_its_code_block() -> None:
    text = shorten_markdown(lambda _rows: code_block("````\n" + "line\n" * 100_000), "headwater upgrade")
    assert len(text) <= LIMIT
    assert text.count("`````") == 2
    assert "the end is left out" in text


def test_what_the_caller_leaves_out_is_always_said() -> None:
    text = shorten_markdown(lambda _rows: document(7), "headwater drift", omitted="the others are not listed")
    assert text.startswith(document(7))
    assert "This report is shortened: the others are not listed, because" in text
    assert "rows" not in text


@given(
    st.lists(st.sampled_from(["text", "", "```", "```yaml", "````", "| a | b |", "x" * 700]), max_size=80),
    st.integers(400, 3_000),
)
def test_any_document_is_shortened_to_the_limit(lines: list[str], limit: int) -> None:
    whole = "\n".join(lines)
    text = shorten_markdown(lambda _rows: whole, "headwater drift", limit)
    assert len(text) <= limit
    assert text == whole or text.endswith("`headwater drift` shows all.*\n")
