"""A cluster whose client is killed after some operations of a move."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from headwater_spark.driver.processor_move import state_move
from headwater_spark.driver.processor_move.entry_copy import MoveProducer
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.engine.records import Commits, OutputRecord


def die_after(operations: int, module: ModuleType = state_move) -> None:
    """End this process with SIGKILL after this number of operations of the moves that `module` starts."""
    _Killed.left = operations
    setattr(module, "KafkaMoveCluster", _DyingCluster)  # noqa: B010 - in this process only


class _Killed:
    """Ends this process with SIGKILL instead of an operation."""

    left = 0

    @classmethod
    def count(cls) -> None:
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1


class _DyingProducer:
    def __init__(self, producer: MoveProducer) -> None:
        self._producer = producer

    def send(self, records: Iterable[OutputRecord]) -> int:
        sent = self._producer.send(records)
        if sent:
            _Killed.count()  # within a transaction
        return sent

    def commit(self, commits: Commits) -> None:
        self._producer.commit(commits)
        _Killed.count()


class _DyingCluster(KafkaMoveCluster):
    def expand(self, counts: dict[str, int]) -> None:  # type: ignore[override]  # the mover passes a dict
        for topic, count in counts.items():
            super().expand({topic: count})
            _Killed.count()

    def at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make one call after the other: the first task is marked first."""
        for call in calls:
            call()

    @contextmanager
    def producer(self, name: str) -> Iterator[MoveProducer]:
        with super().producer(name) as producer:
            yield _DyingProducer(producer)
