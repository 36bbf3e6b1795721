"""Write results into the documentation: tables, a chart, and the five figures of the README."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from tests.bench.figures import Figure, Measured, Results, goal, number, spread
from tests.bench.growth.series import per_added_unit, sorted_by_series

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "benchmarks.json"
_PAGE, CHART, _README = (
    ROOT / "docs" / "benchmarks.md",
    ROOT / "docs" / "benchmarks.svg",
    ROOT / "README.md",
)
FILES = (RESULTS, _PAGE, CHART, _README)
"""The files that have results."""
_BLOCK = re.compile(r"(<!-- results of `make bench` -->\n).*?(<!-- end of results -->)", re.DOTALL)
_BAR_WIDTH = 40
_LONGEST_BAR = 2.0
"""Bars end at twice the peer's speed: beyond, the number says it."""
TITLES = {
    "runtime": "Runtime",
    "keys": "Runtime: distributions of keys",
    "stateful": "Runtime: windows and joins",
    "further": "Runtime: further operators",
    "latency": "Runtime: latency",
    "threads": "Stream threads",
    "processors": "Added processors",
    "start": "Start of `headwater run`",
    "idle": "Idle application",
    "previews": "`pulumi preview`",
    "drift": "`headwater drift`",
    "compile": "Compiler",
    "requests": "Requests to brokers",
    "agent": "Agent",
    "engine": "Engine, without Spark and Kafka",
    "memory": "Memory",
    "scale": "Commands at scale",
    "growth": "Growth",
}
# Benchmark, figure and peer of the figures that most users ask for.
README_FIGURES = (
    ("runtime", "map", "Kafka Streams"),
    ("runtime", "count, one update per record, exactly once", "Kafka Streams"),
    ("latency", "latency p50: map", "Kafka Streams"),
    ("previews", "create preview, 5,000 topics", "a plain Pulumi program"),
    ("drift", "drift, 1,000 topics", "list and describe-configs"),
)


def saved() -> Results:
    """Return the results in the documentation."""
    return Results.read(RESULTS)


def write(results: Results) -> None:
    """Replace the results in the documentation."""
    results.write(RESULTS)
    for file, text in (*pages(results).items(), (CHART, chart(results))):
        file.write_text(text, encoding="utf-8")


def pages(results: Results) -> dict[Path, str]:
    """Return file → its text with the results."""
    return {_PAGE: _replaced(_PAGE, tables(results)), _README: _replaced(_README, readme(results))}


def tables(results: Results) -> str:
    """Return a table for each benchmark."""
    return "\n\n".join(
        f"### {TITLES[name]}\n\n{_origin(measured)}\n\n{_table(measured.figures)}"
        for name, measured in _ordered(results).items()
    )


def readme(results: Results) -> str:
    """Return the table of the README."""
    by_name = {(name, figure.what, figure.peer): figure for name, figure in results}
    chosen = [by_name[key] for key in README_FIGURES if key in by_name]
    return _table(chosen)


def chart(results: Results) -> str:
    """Return an SVG picture: how fast each compared figure is next to its peer."""
    console = Console(record=True, width=150, file=io.StringIO(), color_system="truecolor")
    table = Table(
        title="How many times as fast as the peer (a bar of half the width: equally fast)", box=None
    )
    for heading in ("", "compared with", "times", "0 … 1 … 2"):
        table.add_column(heading, justify="right" if heading == "times" else "left", no_wrap=True)
    for measured in _ordered(results).values():
        for figure in measured.figures:
            if figure.speed is not None:
                color = "green" if figure.meets_goal in (True, None) else "dark_orange"
                bar = Bar(_LONGEST_BAR, 0, min(figure.speed, _LONGEST_BAR), width=_BAR_WIDTH, color=color)
                table.add_row(figure.what, figure.peer, f"{figure.speed:.2f}", bar)
    console.print(table)
    return console.export_svg(title="Headwater next to other programs", unique_id="benchmarks")


def _ordered(results: Results) -> dict[str, Measured]:
    """Return benchmark → figures in the order of the titles, in whatever order they were measured."""
    names = sorted(results.benchmarks, key=list(TITLES).index)
    return {name: results.benchmarks[name] for name in names}


def _origin(measured: Measured) -> str:
    settings = f" {measured.settings}." if measured.settings else ""
    return f"Measured on {measured.date}, commit `{measured.commit}`, {measured.machine}.{settings}"


def _table(figures: Sequence[Figure]) -> str:
    if any(figure.size is not None for figure in figures):
        return _growth_table(figures)
    rows = [
        (
            figure.what,
            number(figure.ours, figure.unit) + spread(figure.our_range, figure.unit),
            _peer(figure),
            _ratio(figure),
            "" if figure.goal is None else f"{goal(figure)}{'' if figure.meets_goal else ': **missed**'}",
        )
        for figure in figures
    ]
    head = ("", "Headwater", "compared with", "ratio", "goal")
    return _lines((head, ("---", "---:", "---", "---:", "---"), *rows))


def _peer(figure: Figure) -> str:
    if figure.theirs is None:
        return ""
    return f"{figure.peer}: {number(figure.theirs, figure.unit)}{spread(figure.their_range, figure.unit)}"


def _ratio(figure: Figure) -> str:
    """Return the ratio; of numbers whose rounds overlap, with a remark."""
    if figure.ratio is None:
        return ""
    return f"{figure.ratio:.2f}{', not different' if figure.is_undecided else ''}"


def _growth_table(figures: Sequence[Figure]) -> str:
    """Return a row for each size; the last column is constant where the growth is a straight line."""
    rows = []
    for previous, figure in sorted_by_series(figures):
        added = None if previous is None else per_added_unit(previous, figure)
        numbers = ("" if each is None else number(each, figure.unit) for each in (figure.per_unit, added))
        size = "" if figure.size is None else f"{figure.size:,} {figure.units}"
        in_all = "" if figure.is_per_unit else number(figure.ours, figure.unit)
        rows.append((figure.what, size, in_all, *numbers))
    head = ("", "size", "in all", "per unit", "per added unit")
    return _lines((head, ("---", "---:", "---:", "---:", "---:"), *rows))


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _replaced(file: Path, text: str) -> str:
    page, replaced = _BLOCK.subn(
        lambda found: f"{found[1]}\n{text}\n\n{found[2]}", file.read_text(encoding="utf-8")
    )
    assert replaced == 1, f"{file.name} has no block for results"
    return page
