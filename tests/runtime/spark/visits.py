"""Users' processors in the application of `growing`, and the results that they must have (KIP-287)."""

from collections import Counter
from collections.abc import Mapping

import attrs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from tests.runtime.spark.growing import DOCUMENT, TIMEOUT_SECONDS, Growing
from tests.runtime.visiting import WINDOW_MS

_SINK = "visits"
_STORE = "keyed: record, serdes: {key: string, value: long}"
_WINDOWS = f"kind: window, retention: 3650d, windowSize: {WINDOW_MS}ms"
_STEPS = f"""
  - addStateStore: {{name: visit-totals, {_STORE}}}
  - addStateStore: {{name: visit-windows, {_WINDOWS}, {_STORE}}}
  - addStateStore: {{name: visit-pending, kind: timestampedKeyValue, {_STORE}}}
  - process:
      from: orders
      class: tests.runtime.visiting:Visits
      stores: [visit-totals, visit-windows, visit-pending]
  - to: {{topic: {_SINK}-APP}}
  - process: {{from: orders, class: "tests.runtime.visiting:Reports", stores: [visit-pending]}}
  - to: {{topic: {_SINK}-APP}}
"""
VISITS_DOCUMENT = DOCUMENT + _STEPS
"""Two users' processors count the orders, too. Stores keep old windows: the times of orders are years old."""


def create_visits(growing: Growing) -> None:
    growing.topics.create({growing.name(_SINK): growing.initial})


def await_visits(growing: Growing, client: StreamsApplication) -> None:
    """Wait until the results are those of a run that never scaled. All orders must be processed.

    Orders of an added partition may be late: their windows are reported at the next punctuation of their
    processor. So there are two more orders of each key, of which the second are late enough for it.
    """
    closed_ms = max(record[3] for record in growing.topics.get(growing.name("orders")))
    growing.order(2)
    expected = _expected(growing, closed_ms)
    assert until(
        lambda: client.state.is_final or not expected.differences(_found(growing)), TIMEOUT_SECONDS
    ), (
        expected.differences(_found(growing)),
        client.state,
        client.problems,
    )
    assert not client.state.is_final, client.problems


@attrs.define
class _Visits:
    """What is reported of each key: all totals, new orders in total, and the orders of each window.

    Windows that end after `closed_ms` may be reported, in several parts.
    """

    totals: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    new: Counter[str] = attrs.field(factory=Counter)
    windows: Counter[tuple[str, int]] = attrs.field(factory=Counter)
    closed_ms: int = 0

    def differences(self, found: "_Visits") -> Mapping[str, object]:
        windows = {
            window: (count, found.windows[window])
            for window, count in self.windows.items()
            if found.windows[window] > count
            or (found.windows[window] < count and window[1] + WINDOW_MS <= self.closed_ms)
        }
        different: dict[str, object] = {
            "totals": self.totals - found.totals or found.totals - self.totals,
            "new": self.new - found.new or found.new - self.new,
            "windows": windows or found.windows.keys() - self.windows.keys(),
        }
        return {name: each for name, each in different.items() if each}


def _expected(growing: Growing, closed_ms: int) -> _Visits:
    orders = sorted(
        (record[3], (record[4] or b"").decode()) for record in growing.topics.get(growing.name("orders"))
    )
    assert len(orders) == len(growing.orders)
    visits = _Visits(closed_ms=closed_ms)
    for time, key in orders:
        visits.new[key] += 1
        visits.totals[key, visits.new[key]] += 1
        visits.windows[key, time // WINDOW_MS * WINDOW_MS] += 1
    return visits


def _found(growing: Growing) -> _Visits:
    visits = _Visits()
    for key, values in growing.written(_SINK).items():
        for value in values:
            kind, *numbers = value.split()
            first, last = int(numbers[0]), int(numbers[-1])
            if kind == "total":
                visits.totals[key, first] += 1
            elif kind == "new":
                visits.new[key] += first
            else:
                visits.windows[key, first] += last
    return visits
