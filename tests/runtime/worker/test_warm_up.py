"""Which local state of an added processor is restored before the cut, and how far (KIP-287)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from headwater.kafka import Connection
from headwater_spark.worker import warm_up as module
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.partition_reader import OffsetRange, RecordChunk
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult, warm_up
from tests.runtime.record_chunks import chunk_of
from tests.runtime.worker.memory_broker import COUNTS, batch_request

_CHANGELOG = "counted-counts-changelog"
_LINEAGE = "headwater.line"
_SOON, _NOW = 60.0, 0.0


@attrs.define
class Changelog:
    """The changelog partitions of all tasks: `ends` is task → offset after the last record."""

    ends: Mapping[int, int]
    failing: frozenset[int] = frozenset()
    read_from: list[tuple[int, int]] = attrs.field(factory=list)
    is_open: bool = False

    def __call__(self, _: Connection, group: str) -> "Changelog":
        assert group == "counted"
        self.is_open = True
        return self

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        assert topic == _CHANGELOG
        if partition in self.failing:
            raise RuntimeError("no broker")
        return 0, self.ends[partition]

    def read(self, topic: str, partition: int, range_: OffsetRange) -> Iterator[RecordChunk]:
        """Yield chunks of two records."""
        self.read_from.append((partition, range_.start))
        assert range_.end == self.ends[partition]
        for first in range(range_.start, range_.end, 2):
            offsets = range(first, min(first + 2, range_.end))
            records = tuple((topic, partition, each, each, b"k%d" % each, bytes(16), ()) for each in offsets)
            yield chunk_of(records, offsets[-1] + 1)
        yield chunk_of((), range_.end)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def changelog(monkeypatch: pytest.MonkeyPatch) -> Changelog:
    changelog = Changelog({2: 5, 3: 3})
    monkeypatch.setattr(module, "PartitionReader", changelog)
    return changelog


def _request(folder: Path, lineage: int = 7, tasks: Sequence[int] = (2, 3)) -> WarmUpRequest:
    request = batch_request(COUNTS, folder)
    return WarmUpRequest(
        application="counted",
        connection=request.connection,
        state_folder=folder,
        tasks=tuple((request.program, task) for task in tasks),
        lineage=lineage,
    )


def _state(folder: Path, task: int) -> tuple[int, Mapping[str, int], Mapping[str, int], int]:
    """Return version, metadata, offsets and number of entries of a local state."""
    state = LocalState(folder / f"0_{task}")
    try:
        entries = len(list(state.store("counts").range()))
        return state.version, dict(state.metadata), dict(state.offsets()), entries
    finally:
        state.release()


def test_all_tasks_are_restored_to_the_end(changelog: Changelog, tmp_path: Path) -> None:
    assert warm_up(_request(tmp_path), _SOON) == WarmUpResult(done=2, restored=8)
    assert _state(tmp_path, 2) == (0, {_LINEAGE: 7}, {_CHANGELOG: 5}, 5)
    assert _state(tmp_path, 3) == (0, {_LINEAGE: 7}, {_CHANGELOG: 3}, 3)
    assert not changelog.is_open
    assert warm_up(_request(tmp_path), _SOON) == WarmUpResult(done=2)
    assert changelog.read_from == [(2, 0), (3, 0)]


def test_a_restore_continues_where_the_last_one_ended(changelog: Changelog, tmp_path: Path) -> None:
    """Without time, each job restores one chunk of records."""
    assert warm_up(_request(tmp_path), _NOW) == WarmUpResult(restored=2)
    assert _state(tmp_path, 2) == (0, {_LINEAGE: 7}, {_CHANGELOG: 2}, 2)
    assert warm_up(_request(tmp_path), _NOW) == WarmUpResult(restored=2)
    changelog.ends = {2: 6, 3: 2}
    assert warm_up(_request(tmp_path), _NOW) == WarmUpResult(done=1, restored=2)
    assert warm_up(_request(tmp_path, tasks=[3]), _NOW) == WarmUpResult(done=1, restored=2)
    assert changelog.read_from == [(2, 0), (2, 2), (2, 4), (3, 0)]


def test_state_of_another_expansion_is_deleted(changelog: Changelog, tmp_path: Path) -> None:
    warm_up(_request(tmp_path), _SOON)
    changelog.ends = {2: 1, 3: 0}
    assert warm_up(_request(tmp_path, lineage=8), _SOON) == WarmUpResult(done=2, restored=1)
    assert _state(tmp_path, 2) == (0, {_LINEAGE: 8}, {_CHANGELOG: 1}, 1)
    assert _state(tmp_path, 3) == (0, {}, {}, 0)


def test_state_that_a_task_has_used_is_not_changed(changelog: Changelog, tmp_path: Path) -> None:
    """A job that ends late meets it: the cut was meanwhile."""
    state = LocalState(tmp_path / "0_2")
    state.metadata[_LINEAGE] = 7
    state.commit(5)
    state.release()
    assert warm_up(_request(tmp_path, tasks=[2]), _SOON) == WarmUpResult(done=1)
    assert _state(tmp_path, 2) == (6, {_LINEAGE: 7}, {}, 0)
    assert not changelog.read_from


def test_failures_are_results(changelog: Changelog, tmp_path: Path) -> None:
    """A failed Spark task would end its worker process, and the tasks that it owns."""
    lease = Lease.try_acquire(tmp_path, "counted-0-2", "another")
    assert lease is not None
    changelog.failing = frozenset({3})
    result = warm_up(_request(tmp_path), _SOON)
    assert (result.done, result.restored) == (2, 0)
    assert result.failures == (
        "counted-0-2: TaskOwnedError: another process has the local state",
        "counted-0-3: RuntimeError: no broker",
    )
    assert not (tmp_path / "0_2").exists()
    assert not changelog.is_open
    lease.release()
    changelog.failing = frozenset()
    assert warm_up(_request(tmp_path), _SOON) == WarmUpResult(done=2, restored=8)


def test_a_client_that_cannot_be_created_is_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no client")

    monkeypatch.setattr(module, "PartitionReader", fail)
    assert warm_up(_request(tmp_path)) == WarmUpResult(done=2, failures=("RuntimeError: no client",))
