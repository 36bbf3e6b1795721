"""PURE. Whether and when a query that failed is started again."""

import attrs

from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.task import PoisonRecordError


@attrs.frozen
class Restarts:
    """`most` failures in a row, batches in between ending the row; `0` = the first failure is final."""

    most: int = 10
    first_pause_ms: int = 200
    longest_pause_ms: int = 30_000

    def pause_ms(self, failure: BaseException | None, in_a_row: int) -> int | None:
        """Return how long to wait, None = not again. `in_a_row` counts this failure.

        A record that cannot be handled will not get better by itself; one that waits for a partition may
        wait as long as it takes.
        """
        if isinstance(failure, PoisonRecordError):
            return None
        if in_a_row > self.most and not isinstance(failure, TaskMigrated):
            return None
        return int(min(self.first_pause_ms * 2 ** min(in_a_row - 1, 16), self.longest_pause_ms))
