"""With enough grace, the final results of windows follow from their definition, in any order of input."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.topology_runner import TopologyRunner

QUICK = settings(max_examples=3 * settings().max_examples // 2)
RECORDS = st.lists(st.tuples(st.sampled_from(["k", "l"]), st.integers(0, 60)), max_size=18)
_TOPOLOGY = """
- stream: {{topic: in, serdes: {{key: string, value: string}}}}
- groupByKey: null
- windowedBy: {{{window}}}
- count: {{materialized: counts}}
- toStream: null
- to: {{topic: out}}
"""

Counts = dict[tuple[str, int, int], int]


def counted(window: str, records: Sequence[tuple[str, int]], size: int | None) -> Counts:
    """Return (key, start, end) → last count that is not deleted."""
    runner = TopologyRunner(_TOPOLOGY.format(window=window))
    for sent, time in records:
        runner.feed(runner.record("in", sent.encode(), b"v", time))
    last: dict[tuple[str, int, int], int | None] = {}
    for topic, _, windowed, value, _, _ in runner.all_outputs:
        if topic == "out" and windowed is not None:
            if size is None:
                key, end = windowed[:-16], int.from_bytes(windowed[-16:-8], "big")
                start = int.from_bytes(windowed[-8:], "big")
            else:
                start = int.from_bytes(windowed[-8:], "big")
                end, key = start + size, windowed[:-8]
            last[key.decode(), start, end] = None if value is None else int.from_bytes(value, "big")
    return {window: count for window, count in last.items() if count is not None}


def within(records: Sequence[tuple[str, int]], key: str, first: int, last: int) -> int:
    return sum(1 for other, time in records if other == key and first <= time <= last)


@QUICK
@given(records=RECORDS)
def test_hopping(records: list[tuple[str, int]]) -> None:
    expected: Counts = Counter()
    for key, time in records:
        for start in range(0, time + 1, 4):
            if time < start + 10:
                expected[key, start, start + 10] += 1
    assert counted("hopping: {size: 10ms, advance: 4ms, grace: 1h}", records, 10) == expected


@QUICK
@given(records=RECORDS)
def test_sliding(records: list[tuple[str, int]]) -> None:
    difference = 7
    starts = {(key, max(0, time - difference)) for key, time in records}
    starts |= {
        (key, time + 1) for key, time in records if within(records, key, time + 1, time + 1 + difference)
    }
    expected = {
        (key, start, start + difference): within(records, key, start, start + difference)
        for key, start in starts
    }
    assert counted("sliding: {difference: 7ms, grace: 1h}", records, difference) == expected


@QUICK
@given(records=RECORDS)
def test_session(records: list[tuple[str, int]]) -> None:
    expected: Counts = {}
    for key in {key for key, _ in records}:
        times = sorted(time for other, time in records if other == key)
        start = times[0]
        for time, following in zip(times, [*times[1:], times[-1] + 6], strict=True):
            if following - time > 5:
                expected[key, start, time] = within(records, key, start, time)
                start = following
    assert counted("session: {gap: 5ms, grace: 1h}", records, None) == expected
