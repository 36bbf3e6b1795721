"""How long an application under load takes to restore its state from its changelog topics."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from shutil import rmtree

from headwater.kafka import Connection
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets

_SECONDS = 300.0


def restore_seconds(
    started: Callable[[], AbstractContextManager[object]],
    servers: str,
    group: str,
    partitions: list[tuple[str, int]],
    state: Path,
) -> float:
    """Return how much longer a start takes without the local state; `started` runs the application.

    A start is complete when all records are processed that were there when it began.
    """
    with_state = _start_seconds(started, servers, group, partitions)
    rmtree(state)
    return _start_seconds(started, servers, group, partitions) - with_state


def _start_seconds(
    started: Callable[[], AbstractContextManager[object]],
    servers: str,
    group: str,
    partitions: list[tuple[str, int]],
) -> float:
    with closing(GroupOffsets(Connection(bootstrap_servers=(servers,)), group)) as offsets:
        ends, began = offsets.end_offsets(partitions), time.monotonic()

        def is_complete() -> bool:
            committed = offsets.committed(partitions)
            return all(committed.get(each, 0) >= end for each, end in ends.items())

        with started():
            if not until(is_complete, _SECONDS):
                raise RuntimeError(f"{group} has not processed its input within {_SECONDS:g} s")
            return time.monotonic() - began
