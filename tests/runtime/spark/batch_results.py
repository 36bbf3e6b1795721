"""What the driver receives from the tasks of each batch."""

from collections.abc import Iterable

import pytest

from headwater_spark.driver.queries.progress import Progress
from headwater_spark.worker.messages import BatchResult


class Results:
    """The results of all batches, as the driver receives them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[list[BatchResult]] = []
        record = Progress.record_batch

        def spy(progress: Progress, query: str, number: int, results: Iterable[BatchResult]) -> None:
            kept = list(results)
            self.batches.append(kept)
            record(progress, query, number, kept)

        monkeypatch.setattr(Progress, "record_batch", spy)

    @property
    def threads(self) -> set[str]:
        return {result.thread.rpartition("-")[2] for batch in self.batches for result in batch}
