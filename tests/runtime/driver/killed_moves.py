"""Kill a move of the state in memory at each of its operations, and complete it by another one."""

from collections.abc import Callable

import pytest

from headwater_spark.driver.processor_move.moves import Move
from tests.runtime.driver.counting_application import Application, execute
from tests.runtime.driver.memory_move import KilledError

Start = Callable[[], tuple[Application, Move]]
"""Returns an application, and the move that follows."""


def operations(start: Start) -> range:
    """Return the numbers of operations after which the move can be killed."""
    app, move = start()
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    app.cluster.before_operation = count
    execute(app.cluster, move)
    return range(calls)


def kill_and_complete(start: Start, operations: int) -> Application:
    """Kill the move after this number of operations, complete it, and process a record of each key."""
    app, move = start()
    app.cluster.kill_after(operations)
    with pytest.raises(KilledError):
        execute(app.cluster, move)
    app.cluster.kill_after(None)
    execute(app.cluster, move)
    app.complete(move.after)
    app.process_each_key()
    return app
