"""Two tasks that keep or count the windows of a batch in different ways have the same results."""

from collections.abc import Iterator, Sequence

from headwater_spark.engine.records import Headers, InputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.task_input import number_keys
from tests.runtime.worker.test_task_input import columns

Drawn = tuple[int, bytes | None, bytes | None, Headers, str]
"""Timestamp, key, value, headers and topic of a record."""

Stepped = tuple[int, int, bytes | None, bytes | None]
"""By how much the time advances, by how much a record is behind it, its key and value."""


def check_equal_results(
    from_store: Task, in_lists: Task, batches: Sequence[Sequence[Drawn]], cache_bytes: int
) -> None:
    """Check output records, dropped records, metadata and changelog records after each batch."""
    for task in (from_store, in_lists):
        task.resize_cache(cache_bytes)
    offset = 0
    for drawn in batches:
        records: list[InputRecord] = [
            (topic, 0, offset + at, time, key, value, headers)
            for at, (time, key, value, headers, topic) in enumerate(drawn)
        ]
        offset += len(records)
        expected = from_store.process(records, 5)
        assert in_lists.process(records, 5) == expected
        assert in_lists.context.dropped == from_store.context.dropped
        assert in_lists.state.metadata == from_store.state.metadata
        assert in_lists.state.changes() == from_store.state.changes()
        for task in (from_store, in_lists):
            task.state.commit(task.state.version)


def check_windows_in_columns(
    one_by_one: Task,
    by_columns: Task,
    batches: Sequence[Sequence[Stepped]],
    cache_bytes: int,
    begin: int = 0,
) -> int:
    """Check both tasks as above; the second one counts in columns if it can. Return in how many batches.

    Time begins at `begin`.
    """
    found = 0
    for task in (one_by_one, by_columns):
        task.resize_cache(cache_bytes)
    for records in _records_of(batches, begin):
        keyed = number_keys(columns(records, 5))
        assert keyed is not None
        expected, outputs = one_by_one.process(records, 5), by_columns.process_windows(keyed, 5)
        found += outputs is not None
        assert (by_columns.process(records, 5) if outputs is None else outputs) == expected
        assert by_columns.context.dropped == one_by_one.context.dropped
        assert by_columns.state.metadata == one_by_one.state.metadata
        assert by_columns.state.changes() == one_by_one.state.changes()
        for task in (one_by_one, by_columns):
            task.state.commit(task.state.version)
    return found


def _records_of(batches: Sequence[Sequence[Stepped]], begin: int) -> Iterator[list[InputRecord]]:
    now, offset = begin, 0
    for batch in batches:
        records: list[InputRecord] = []
        for step, behind, key, value in batch:
            now += step
            records.append(("in", 0, offset, max(0, now - behind), key, value, ()))
            offset += 1
        yield records


def at_times(*records: tuple[int, bytes | None]) -> list[list[Stepped]]:
    """Return a batch of records with (time, key)."""
    newest = 0
    batch: list[Stepped] = []
    for time, key in records:
        step = max(0, time - newest)
        newest += step
        batch.append((step, newest - time, key, b"v"))
    return [batch]
