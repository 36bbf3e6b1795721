"""How long a query may wait for a signal; an application is idle when all that was committed is processed."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import attrs
import pytest

from headwater_spark.driver.layout import Layout, QueryInput
from headwater_spark.driver.queries.idle_queries import WatchedInput, wait_until_idle
from headwater_spark.driver.states import ClientState


@attrs.define
class Query:
    """Processes its visible records and commits a record to `sink` for each of them, which is not visible."""

    visible: int = 0
    committed: int = 0
    sink: "Query | None" = None
    is_active: bool = True
    end_offset: int | None = None

    def process_available(self) -> bool:
        if self.visible:
            self.end_offset = (self.end_offset or 0) + self.visible
            if self.sink is not None:
                self.sink.committed += self.visible
            self.visible = 0
        return self.is_active

    def show(self) -> None:
        self.visible, self.committed = self.visible + self.committed, 0


def wait(
    queries: dict[str, Query],
    state: Callable[[], ClientState] = lambda: ClientState.RUNNING,
    pause: Callable[[], object] = lambda: None,
    is_expanding: Callable[[], bool] = lambda: False,
) -> None:
    def show() -> None:
        for query in queries.values():
            query.show()

    wait_until_idle(queries, state=state, await_commits=show, is_expanding=is_expanding, pause=pause)


def test_records_are_processed_that_become_visible_after_their_commit() -> None:
    """With exactly once, each sub-topology reads what another one has committed a moment before."""
    last = Query()
    between = Query(sink=last)
    first = Query(visible=3, sink=between)
    wait({"2": last, "1": between, "0": first})
    assert [query.end_offset for query in (first, between, last)] == [3, 3, 3]


def test_stopped_query_is_not_idle_until_it_runs_again() -> None:
    query = Query(is_active=False)
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        query.is_active = pauses >= 3

    wait({"0": query}, pause=pause)
    assert pauses == 3


def test_client_is_running_at_the_end() -> None:
    """Its state follows the states of its queries a moment later."""
    states = iter([ClientState.REBALANCING] * 6)
    wait({"0": Query()}, state=lambda: next(states, ClientState.RUNNING))
    assert next(states, None) is None


def test_processors_are_added_before_the_end() -> None:
    expanding = iter([True] * 5)
    wait({"0": Query()}, is_expanding=lambda: next(expanding, False))
    assert next(expanding, None) is None


def test_wait_ends_with_the_client() -> None:
    def ending() -> Iterator[ClientState]:
        yield from [ClientState.RUNNING, ClientState.PENDING_ERROR]
        while True:
            yield ClientState.ERROR

    states = ending()
    wait({"0": Query(is_active=False)}, state=lambda: next(states))


@attrs.frozen
class _Specs:
    layout: Layout


@pytest.mark.parametrize(
    ("patterns", "ticks", "expected"),
    [
        pytest.param((), False, 10.0, id="named topics"),
        pytest.param(("in-.*",), False, 1.0, id="a topic that matches may be new"),
        pytest.param(("in-.*",), True, 0.1, id="ticks of the wall clock"),
    ],
)
def test_longest_wait_depends_on_the_input(
    patterns: tuple[str, ...], expected: float, *, ticks: bool
) -> None:
    input_ = QueryInput(topics=("in",), patterns=patterns, resets={}, ticks=ticks)
    specs = cast("Any", _Specs(Layout(inputs={"0": input_})))
    assert WatchedInput(specs, "0").max_wait_seconds == expected
