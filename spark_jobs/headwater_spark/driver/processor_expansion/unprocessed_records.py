"""Whether few enough records are unprocessed, so that the cut of an expansion may begin.

Unprocessed records are read in the cut, to check that they are in the partition of their key.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import attrs

from headwater.model.problems import Problem
from headwater_spark.driver.processor_move import problems
from headwater_spark.driver.processor_move.checks import unprocessed
from headwater_spark.driver.processor_move.entry_copy import MoveCluster
from headwater_spark.driver.processor_move.moves import Move

_MOST = 200_000
_SILENT_SECONDS = 10.0
"""How long a wait is normal: then its reason is reported."""


@attrs.define
class UnprocessedRecords:
    """The unprocessed records of one application; `delayed` gets the reason of a long wait."""

    _move: Move
    _cluster: MoveCluster
    _delayed: Callable[[Problem], None]
    _since: float | None = attrs.field(default=None, init=False)
    _started: str = attrs.field(default="", init=False)

    def are_few(self) -> bool:
        """Return whether the cut may begin; raises `KafkaException`."""
        if unprocessed(self._move, self._cluster) <= _MOST:
            return True
        if self._since is None:
            self._since = time.monotonic()
            self._started = datetime.now(UTC).isoformat(timespec="seconds")
        elif time.monotonic() - self._since >= _SILENT_SECONDS:
            self._delayed(problems.many_unprocessed(self._move, _MOST, self._started))
        return False
