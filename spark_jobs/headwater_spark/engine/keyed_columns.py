"""Records in columns with numbered keys, for tasks that only count them in windows.

A task whose records go directly to a windowed `count` with a cache (`operators.cached_windows`) processes its
input so: the number of records per key and window is enough, as long as they are cut where updates leave the
cache.

This module imports no numpy: the process from which Spark forks workers loads it, and numpy starts threads.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from headwater_spark.engine.records import InputRecord, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
NULL_KEY = -1
LATEST_TIME = 2**53
"""Times up to this one can be computed with without an overflow."""


@attrs.frozen(eq=False, kw_only=True)
class KeyedColumns:
    """Records of one input partition, in order, without headers and negative timestamps.

    `codes` has the position of each record's key in `keys`, or `NULL_KEY`. `times` are in milliseconds.
    `records` returns the records of some rows.
    """

    topic: str
    keys: Sequence[bytes]
    codes: "Numbers"
    times: "Numbers"
    records: "Callable[[Numbers], Sequence[InputRecord]]"


class WindowCounts(Protocol):
    """How a node counts records in columns."""

    @property
    def is_usable(self) -> bool:
        """Return whether single records would have the same results; known when all nodes are built."""
        ...

    def count(self, columns: KeyedColumns, deserialize_key: Callable[[bytes], Value]) -> tuple[int, int]:
        """Count all records; return the numbers of records without a key, and of closed windows."""
        ...


@attrs.frozen
class TimeWindows:
    """Windows of `size` milliseconds that start every `advance`; window n starts at n * advance."""

    size: int
    advance: int
    grace: int
