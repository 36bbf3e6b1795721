"""Two tasks that keep the windows of a batch in different ways have the same results."""

from collections.abc import Sequence

from headwater_spark.engine.records import Headers, InputRecord
from headwater_spark.engine.task import Task

Drawn = tuple[int, bytes | None, bytes | None, Headers, str]
"""Timestamp, key, value, headers and topic of a record."""


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
