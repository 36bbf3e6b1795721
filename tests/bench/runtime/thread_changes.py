"""The number of batches until a stream thread that was added takes part, and one that was removed is gone."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.worker.messages import BatchResult

_TIMEOUT_SECONDS = 120.0
_LATER = 3
"""Batches after the removal that are checked."""

Batches = list[frozenset[str]]
"""The names of the threads of each batch that has ended."""


@contextmanager
def recorded_batches() -> Iterator[Batches]:
    """Record the batches of all applications of this process that end inside the block."""
    batches: Batches = []
    record = Progress.record_batch

    def spy(progress: Progress, query: str, number: int, results: Iterable[BatchResult]) -> None:
        kept = list(results)
        batches.append(frozenset(result.thread for result in kept))
        record(progress, query, number, kept)

    with patch.object(Progress, "record_batch", spy):
        yield batches


def batches_until_added(application: StreamsApplication, batches: Batches) -> int:
    """Add a thread; return the number of batches that ended since, up to the first one that it took part in.

    The application has records for more batches, each with more tasks than threads.
    """
    with application.stream_threads._changed:  # no batch takes or gives back threads meanwhile
        before = len(batches)
        name = application.add_stream_thread()
    if name is None:
        raise RuntimeError(f"no thread was added: {application.state.value}")
    _await(lambda: any(name in each for each in batches[before:]), f"{name} takes part in no batch")
    return next(number for number, each in enumerate(batches[before:], start=1) if name in each)


def batches_until_removed(application: StreamsApplication, batches: Batches) -> int:
    """Remove a thread; return the number of batches that ended since, up to the last one it took part in."""
    with application.stream_threads._changed:  # free while the removal waits
        before = len(batches)
        name = application.remove_stream_thread(_TIMEOUT_SECONDS)
    if name is None:
        raise RuntimeError(f"no thread was removed: {application.state.value}")
    after = len(batches) + _LATER
    _await(lambda: len(batches) >= after, "no more batches")
    return max((number for number, each in enumerate(batches[before:], start=1) if name in each), default=0)


def _await(condition: Callable[[], bool], failure: str) -> None:
    if not until(condition, _TIMEOUT_SECONDS):
        raise RuntimeError(failure)
