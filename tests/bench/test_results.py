"""The results in the documentation, and the comparison of two commits."""

import math
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from tests.bench import report
from tests.bench.__main__ import main
from tests.bench.check import changes, environment_of, slower
from tests.bench.figures import Figure, Measured, Results, number, shown

TIME = Figure(what="drift", unit="s", ours=1.2, peer="minimum", theirs=1.0, goal=1.3)
RATE = Figure(
    what="map", unit="records/s", ours=90_000, peer="Kafka Streams", theirs=100_000, goal=1, is_rate=True
)
ALONE = Figure(what="compile", unit="s", ours=0.5, goal=1.0)
FEW, MANY = (
    Figure(what="plan", unit="s", ours=ours, size=size, units="topics")
    for ours, size in ((0.4, 10), (0.85, 1_000))
)


def results(*figures: Figure, name: str = "drift") -> Results:
    return Results().having(
        name,
        Measured(figures=figures, commit="0123456789", date="2026-11-22", machine="2 cores X, 8 GiB, Linux"),
    )


def test_goals_are_met_by_smaller_times_and_larger_rates() -> None:
    assert [TIME.meets_goal, RATE.meets_goal, ALONE.meets_goal] == [True, False, True]
    assert attrs.evolve(TIME, ours=1.31).meets_goal is False
    assert attrs.evolve(TIME, ours=1.304).meets_goal is True
    assert attrs.evolve(TIME, goal=None).meets_goal is None


def test_speed_is_larger_for_smaller_times() -> None:
    assert TIME.speed == pytest.approx(1 / 1.2)
    assert RATE.speed == pytest.approx(0.9)
    assert ALONE.speed is None


def test_each_benchmark_has_a_title() -> None:
    assert set(main.params[0].type.choices) == set(report.TITLES)  # type: ignore[attr-defined]  # click's Choice


def test_lines() -> None:
    assert shown([TIME, RATE, ALONE, MANY]).splitlines() == [
        "drift: 1.20 s; minimum 1.00 s, ratio 1.20 (at most 1.3)",
        "map: 90,000 records/s; Kafka Streams 100,000 records/s, ratio 0.90 (at least 1)",
        "compile: 500 ms (at most 1.00 s)",
        "plan, 1,000 topics: 850 ms, 850 µs each",
    ]
    assert [number(value, "s") for value in (0.0123, 12.34, 123.4)] == ["12.3 ms", "12.3 s", "123 s"]
    assert [number(value, "s") for value in (0.0, 0.000_004, -0.0123)] == ["0.00 ms", "4.00 µs", "-12.3 ms"]
    assert [number(value, "B") for value in (98.8, 988_000_000.0)] == ["98.8 B", "988 MB"]


def test_results_are_written_and_read(tmp_path: Path) -> None:
    without = attrs.evolve(ALONE, ours=math.nan), attrs.evolve(RATE, theirs=math.nan)
    ranged = attrs.evolve(RATE, our_range=(80_000, 95_000), their_range=(96_000, 110_000))
    written = results(TIME, ranged, MANY, *without)
    written.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == written == results(TIME, ranged, MANY)


def test_tables_name_the_missed_goals() -> None:
    text = report.tables(results(TIME, RATE))
    assert (
        "| map | 90,000 records/s | Kafka Streams: 100,000 records/s | 0.90 | at least 1: **missed** |"
        in text
    )
    assert "Measured on 2026-11-22, commit `0123456789`, 2 cores X, 8 GiB, Linux." in text


def test_tables_have_the_range_of_the_rounds() -> None:
    apart = attrs.evolve(RATE, our_range=(80_000, 95_000), their_range=(96_000.0, 110_000.0))
    overlapping = attrs.evolve(apart, our_range=(80_000, 97_000))
    times = attrs.evolve(TIME, our_range=(0.9, 1.3), their_range=None)
    text = report.tables(results(apart, overlapping, times))
    peer = "Kafka Streams: 100,000 records/s (96,000 to 110,000 records/s)"
    goal = "at least 1: **missed**"
    assert text.splitlines()[-3:] == [
        f"| map | 90,000 records/s (80,000 to 95,000 records/s) | {peer} | 0.90 | {goal} |",
        f"| map | 90,000 records/s (80,000 to 97,000 records/s) | {peer} | 0.90, not different | {goal} |",
        "| drift | 1.20 s (900 ms to 1.30 s) | minimum: 1.00 s | 1.20 | at most 1.3 |",
    ]


def test_figures_of_sizes_have_a_row_for_each_size() -> None:
    text = report.tables(results(FEW, MANY, name="growth"))
    assert text.splitlines()[-3:] == [
        "| --- | ---: | ---: | ---: | ---: |",
        "| plan | 10 topics | 400 ms | 40.0 ms |  |",
        "| plan | 1,000 topics | 850 ms | 850 µs | 455 µs |",
    ]


def test_a_commit_is_compared_size_by_size() -> None:
    found = changes([results(FEW, MANY)], [results(MANY, attrs.evolve(FEW, ours=0.5))])
    assert [(change.old.title, change.new.ours) for change in found] == [
        ("plan, 10 topics", 0.5),
        ("plan, 1,000 topics", 0.85),
    ]


def test_chart_does_not_depend_on_the_order_of_measurement() -> None:
    drift, runtime = results(TIME), results(RATE, name="runtime")
    first = drift.having("runtime", runtime.benchmarks["runtime"])
    second = runtime.having("drift", drift.benchmarks["drift"])
    assert report.chart(first) == report.chart(second)


def test_the_results_in_the_documentation_are_those_of_the_last_run() -> None:
    """`make bench` writes them; they are never changed by hand."""
    saved = report.saved()
    for file, text in report.pages(saved).items():
        assert file.read_text(encoding="utf-8") == text, file
    assert report.CHART.read_text(encoding="utf-8") == report.chart(saved)


def test_the_results_in_the_readme_are_complete() -> None:
    measured = {(name, figure.what, figure.peer) for name, figure in report.saved()}
    assert measured.issuperset(report.README_FIGURES)


def test_a_commit_that_is_slower_fails() -> None:
    old = [results(TIME, RATE), results(attrs.evolve(TIME, ours=9.0), RATE), results(TIME, RATE)]
    new = [results(attrs.evolve(TIME, ours=1.4), attrs.evolve(RATE, ours=82_000), ALONE)]
    found = changes(old, new)
    assert [(change.old.what, round(change.speed, 2)) for change in found] == [("drift", 0.86), ("map", 0.91)]
    assert [change.old.what for change in slower(found)] == ["drift"]


def test_each_commit_runs_its_own_code(tmp_path: Path) -> None:
    packages = [tmp_path / "infra/headwater", tmp_path / "spark_jobs/headwater_spark", tmp_path / "tests"]
    for package in packages:
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    program = "import headwater, headwater_spark, tests; print(headwater, headwater_spark, tests)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment_of(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(str(package) in done.stdout for package in packages)
