"""A query whose batches are held, without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

from headwater.model.offset_metadata import BATCH_ID, LINEAGE_KEY, OffsetMetadata
from headwater_spark.driver.queries import batch
from headwater_spark.driver.queries.batch import BatchProcessor
from headwater_spark.driver.queries.task_runner import BatchStoppedError
from headwater_spark.driver.queries.uncommitted_input import UncommittedInput
from headwater_spark.engine.records import Commits, TopicPartition

_SECONDS = 60.0


class _Batches(BatchProcessor):
    """Notes its batches; the first one ends when the test lets it."""

    def __init__(self) -> None:
        spec: Any = SimpleNamespace(native_program=None)
        super().__init__(spec)
        steps: Any = SimpleNamespace(process=self._process_batch)
        self._steps = steps
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


class _Offsets:
    """What is committed, and what is committed again."""

    def __init__(self, found: Commits) -> None:
        self.found = found

    def commits(self, partitions: Sequence[TopicPartition]) -> Commits:
        return {partition: self.found[partition] for partition in partitions}

    def commit_again(self, commits: Commits) -> None:
        self.found = {**self.found, **commits}


def test_commits_are_repaired_between_the_steps_of_a_batch() -> None:
    """A batch may have many steps, and its query may not have processed records since its start."""
    before, outdated = (
        (offset, OffsetMetadata(version, {LINEAGE_KEY: 7, BATCH_ID: version}).encode(-1))
        for offset, version in ((50, 5), (20, 2))
    )
    batches, found = _Batches(), _Offsets({("in", 0): outdated})
    offsets: Any = found
    with _processing(batches, 0):
        assert batches.has_begun.wait(_SECONDS)
        batches.known_commits.learn({("in", 0): before})
        assert batches.repair_commits(offsets) == (("in", 0),)
        assert batches.repair_commits(offsets) == ()
    assert found.found == {("in", 0): before}


def test_no_commit_is_repaired_while_batches_are_held() -> None:
    """Processors may be added then, which changes what is committed."""
    batches = _Batches()
    assert batches.hold(_SECONDS)
    offsets: Any = _Offsets({})
    with patch.object(batch, "_REPAIR_SECONDS", 0.01):
        assert batches.repair_commits(offsets) == ()
    batches.release()
    with _processing(batches, 1) as thread:
        thread.join(_SECONDS)
    assert batches.begun == [1]


def test_a_hold_does_not_wait_longer_for_a_repair_than_for_a_batch() -> None:
    batches, answer = _Batches(), Event()

    class Silent(_Offsets):
        def commits(self, partitions: Sequence[TopicPartition]) -> Commits:
            is_read.set()
            assert answer.wait(_SECONDS)
            return super().commits(partitions)

    is_read, offsets = Event(), cast("Any", Silent({}))
    repair = Thread(target=lambda: batches.repair_commits(offsets))
    repair.start()
    try:
        assert is_read.wait(_SECONDS)
        assert not batches.hold(0.01)
        with _processing(batches, 1):  # nothing is held
            assert batches.has_begun.wait(_SECONDS)
        assert not answer.is_set()
    finally:
        answer.set()
        repair.join(_SECONDS)
    assert batches.hold(_SECONDS)
    batches.release()


def test_a_query_stops_while_its_batches_are_held() -> None:
    batches = _Batches()
    batches.request_hold()
    batches.stop()
    rows: Any = None
    with pytest.raises(BatchStoppedError):
        batches(rows, 1)
    assert not batches.begun


class _Renewing(BatchProcessor):
    """Renews the offsets of an idle partition until the test lets it end."""

    def __init__(self, threads: int) -> None:
        input_ = SimpleNamespace(
            select_renewable=lambda idle: idle,
            services=SimpleNamespace(threads=SimpleNamespace(alive=threads)),
        )
        spec: Any = SimpleNamespace(native_program=None, input=input_)
        super().__init__(spec)
        uncommitted = UncommittedInput({("in", 0): 5})
        runner: Any = SimpleNamespace(uncommitted=uncommitted, renew_offsets=self._renew)
        self._runner = runner
        self.has_begun, self.may_end = Event(), Event()

    def _renew(self, batch: int, idle: frozenset[TopicPartition]) -> None:  # noqa: ARG002
        self.has_begun.set()
        assert self.may_end.wait(_SECONDS)


def test_a_query_is_paused_when_the_renewal_of_its_offsets_has_ended() -> None:
    """A task that commits later would replace the offsets of a topic that was re-created."""
    batches = _Renewing(1)
    renewal, pause = Thread(target=batches.renew_offsets), Thread(target=batches.await_renewal)
    renewal.start()
    assert batches.has_begun.wait(_SECONDS)
    batches.stop()
    pause.start()
    pause.join(0.2)
    assert pause.is_alive()
    batches.may_end.set()
    pause.join(_SECONDS)
    renewal.join(_SECONDS)
    assert [each.is_alive() for each in (pause, renewal)] == [False, False]
    assert not batches.renew_offsets(), "the query is paused"


def test_no_offsets_are_renewed_without_a_stream_thread() -> None:
    """The renewal would wait until one is added, and no processor could be added meanwhile."""
    batches = _Renewing(0)
    assert not batches.renew_offsets()
    assert not batches.has_begun.is_set()
