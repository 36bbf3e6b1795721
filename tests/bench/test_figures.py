"""The calculations and key distributions of `make bench`."""

import math
from collections import Counter
from itertools import pairwise

import pytest

from tests.bench.figures import Figure
from tests.bench.growth.series import parsed_sizes, per_added_unit, sorted_by_series
from tests.bench.runtime.cases import KEYS, OPERATORS, STATEFUL
from tests.bench.runtime.comparison import WORKLOADS, selected
from tests.bench.runtime.latency import Latency
from tests.bench.runtime.threads import gain, slots
from tests.bench.runtime.throughput import Length, Run, Throughput
from tests.bench.runtime.workloads import Keys, Workload


def test_startup_and_shutdown_time_is_separated_from_records() -> None:
    figure = Throughput([(Run(100, 3.0), Run(1_100, 5.0))])
    assert figure.rate == pytest.approx(500)
    assert figure.start_up == pytest.approx(2.8)


@pytest.mark.parametrize(("seconds", "has_range"), [(2.9, False), (3.9, True)])
def test_runs_that_are_too_short_have_no_figure(seconds: float, *, has_range: bool) -> None:
    figure = Throughput([(Run(100, 3.0), Run(1_100, seconds))])
    assert math.isnan(figure.rate)
    assert (figure.rates is not None) == has_range


def test_rates_and_cpu_time_have_a_median_and_a_range() -> None:
    rounds = [
        (Run(100, 1.0, 1.0), Run(1_100, 1.0 + seconds, 1.0 + cpu))
        for seconds, cpu in ((4.0, 3.0), (1.0, 2.0), (2.0, 6.0))
    ]
    figure = Throughput(rounds)
    assert figure.rate == pytest.approx(500)
    assert figure.rates == pytest.approx((250, 1_000))
    assert figure.cpu_per_record == pytest.approx(0.003)
    assert figure.cpu_range == pytest.approx((0.002, 0.006))


@pytest.mark.parametrize(
    ("rate", "start_up", "times"),
    [(100, 1.0, 1), (1_000, 1.0, 16), (1_000, 0.0, 16), (10**9, 1.0, 64), (10**9, -1.0, 64)],
)
def test_runs_are_long_enough(rate: int, start_up: float, times: int) -> None:
    runs = []

    def seconds_for(many: int) -> float:
        runs.append(many)
        return start_up + 1_000 * many / rate

    assert Length(1_000, 10.0).times(seconds_for) == times
    assert runs[-1] == times
    assert len(runs) <= 4


def test_gain_and_slots_of_threads() -> None:
    rates = {"headwater-1": 100, "headwater-2": 180, "headwater-4": 291, "headwater-unset": 300}
    rates |= {"streams-1": 50, "streams-2": 100}
    figures = {name: Throughput([(Run(0, 0.0), Run(rate, 1.0))]) for name, rate in rates.items()}
    found = gain("map", figures)
    assert found.ratio == pytest.approx(1.8 / 2.0)
    assert found.meets_goal
    found = slots("map", figures)
    assert found.ratio == pytest.approx(0.97)
    assert found.meets_goal


def test_percentiles() -> None:
    latency = Latency.of([number / 1000 for number in range(1, 102)])
    assert latency.p50 == pytest.approx(0.051)
    assert latency.p99 == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("keys", "distinct", "most"),
    [
        (Keys.FEW, 10, 0.1),
        (Keys.THOUSAND, 1_000, 0.001),
        (Keys.SKEWED, 201, 0.8),
        (Keys.MILLION, 10_000, 0.0001),
    ],
)
def test_distributions(keys: Keys, distinct: int, most: float) -> None:
    times = Counter(keys.key(number) for number in range(10_000))
    assert len(times) == distinct
    assert times.most_common(1)[0][1] == pytest.approx(10_000 * most, rel=0.01)


def test_unique_keys_come_twice_at_most() -> None:
    times = Counter(Keys.UNIQUE.key(number) for number in range(10_000))
    assert len(times) > 9_000
    assert max(times.values()) <= 3


def test_each_chain_has_as_many_records() -> None:
    small, large = Workload(name="", operator="map", chains=8, share=0.5).sizes(2_000_000)
    assert (small % 8, large % 8) == (0, 0)
    assert (small, large) == (100_000, 1_000_000)


def test_a_straight_line_has_a_constant_cost_per_added_unit() -> None:
    """40 ms, and 3 ms for each topic: the cost per topic falls, that of an added topic does not."""
    plans = [
        Figure(what="plan", unit="s", ours=0.04 + 0.003 * size, size=size, units="topics")
        for size in (10, 100, 1_000)
    ]
    assert [each.per_unit for each in plans] == pytest.approx([0.007, 0.0034, 0.00304])
    assert [per_added_unit(*pair) for pair in pairwise(plans)] == pytest.approx([0.003, 0.003])


def test_a_figure_per_unit_is_not_divided() -> None:
    smaller, larger = (
        Figure(what="update", unit="s", ours=ours, size=size, units="keys", is_per_unit=True)
        for ours, size in ((3e-6, 1_000), (4e-6, 10_000))
    )
    assert larger.per_unit == 4e-6
    assert per_added_unit(smaller, larger) is None


def test_series_are_sorted_and_each_begins_without_a_smaller_size() -> None:
    plan, drift, more_plan, more_drift = (
        Figure(what=what, unit="s", ours=1, size=size, units="topics")
        for size in (10, 100)
        for what in ("plan", "drift")
    )
    assert list(sorted_by_series([plan, drift, more_plan, more_drift])) == [
        (None, plan),
        (plan, more_plan),
        (None, drift),
        (drift, more_drift),
    ]


@pytest.mark.parametrize(
    ("text", "found"), [(None, (1, 2)), ("", ()), ("100", (100,)), ("1000, 10,", (10, 1000))]
)
def test_sizes_of_a_series(text: str | None, found: tuple[int, ...]) -> None:
    assert parsed_sizes(text, (1, 2)) == found


@pytest.mark.parametrize("text", ["0", "10,-1", "many"])
def test_sizes_that_are_not_positive_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=text.rpartition(",")[2]):
        parsed_sizes(text, (1, 2))


def test_workloads_are_selected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_BENCH_ROUNDS", raising=False)
    monkeypatch.delenv(WORKLOADS, raising=False)
    assert selected(STATEFUL) == list(STATEFUL)
    monkeypatch.setenv(WORKLOADS, "map, exactly once; reduce;")
    assert [[each.name for each in selected(benchmark)] for benchmark in (OPERATORS, STATEFUL, KEYS)] == [
        ["map, exactly once"],
        ["reduce"],
        [],
    ]
    monkeypatch.setenv("HEADWATER_BENCH_ROUNDS", "7")
    assert [each.rounds for each in selected(STATEFUL)] == [7]
    monkeypatch.setenv(WORKLOADS, "map, exactly once, reduce")
    with pytest.raises(ValueError, match="unknown"):
        selected(STATEFUL)
