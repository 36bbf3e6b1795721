"""A query whose batches are held, without Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from headwater_spark.driver.queries.batch import BatchProcessor, BatchStoppedError

_SECONDS = 60.0


class _Batches(BatchProcessor):
    """Notes its batches; the first one ends when the test lets it."""

    def __init__(self) -> None:
        spec: Any = None
        super().__init__(spec)
        self.begun: list[int] = []
        self.has_begun, self.may_end = Event(), Event()

    def _process_batch(self, rows: Any, batch: int, *, is_rest: bool) -> bool:  # noqa: ANN401, ARG002
        self.begun.append(batch)
        self.has_begun.set()
        if batch == 0:
            assert self.may_end.wait(_SECONDS)
        return True


@contextmanager
def _processing(batches: _Batches, *numbers: int) -> Iterator[Thread]:
    rows: Any = None

    def process() -> None:
        for number in numbers:
            batches(rows, number)

    thread = Thread(target=process)
    thread.start()
    try:
        yield thread
    finally:
        batches.may_end.set()
        batches.cancel_hold()
        thread.join(_SECONDS)
        assert not thread.is_alive()


def test_no_batch_begins_after_a_hold_is_requested() -> None:
    batches = _Batches()
    with _processing(batches, 0, 1) as thread:
        assert batches.has_begun.wait(_SECONDS)
        batches.request_hold()
        assert not batches.hold(0.01), "a batch has begun"
        batches.may_end.set()
        assert batches.hold(_SECONDS)
        assert batches.begun == [0]
        batches.release()
        thread.join(_SECONDS)
    assert batches.begun == [0, 1]


def test_batches_begin_again_when_the_request_is_canceled() -> None:
    batches = _Batches()
    batches.request_hold()
    with _processing(batches, 1) as thread:
        thread.join(0.2)
        assert not batches.begun
        batches.cancel_hold()
        thread.join(_SECONDS)
    assert batches.begun == [1]


def test_a_query_stops_while_its_batches_are_held() -> None:
    batches = _Batches()
    batches.request_hold()
    batches.stop()
    rows: Any = None
    with pytest.raises(BatchStoppedError):
        batches(rows, 1)
    assert not batches.begun
