"""Which tasks and processes of a reshard may write now, and what they check before they do.

They may run after the process that has started them has ended, and another one has begun, or the application
was reset.
"""

import time
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException

from headwater_spark.driver.processor_move.entry_copy import MoveProducer
from headwater_spark.driver.reshard.entry_move import ReshardCluster
from headwater_spark.driver.reshard.journal import read_round
from headwater_spark.engine.records import TopicPartition

_VISIBLE_SECONDS = 60.0
_POLL_SECONDS = 0.1
_FAILED = KafkaError._FAIL  # noqa: SLF001 - the library's own codes begin with an underscore


class WritingRound(Protocol):
    """Decides which tasks and processes may write: only writers of the round whose number is in the journal.

    A round begins with each execution, and before tasks are repeated. Then all writers of earlier rounds are
    fenced. A late writer that opens its producer afterwards finds another number in the journal.
    """

    @property
    def location(self) -> TopicPartition:
        """The partition whose offset metadata have the number."""
        ...

    @property
    def number(self) -> int: ...

    def begin(self, producer: MoveProducer) -> None:
        """Commit another number, then fence all writers."""
        ...


class OtherRoundError(KafkaException):
    """Another round has begun, or another execution."""

    def __init__(self) -> None:
        super().__init__(KafkaError(_FAILED, "another client executes it"))


def await_partitions(cluster: ReshardCluster, topic: str, count: int) -> None:
    """Wait until the broker of this process knows the partitions that another process has added.

    A process that moves a share never adds partitions: it may run after the process that has started it has
    ended, and the application was reset. Raises `KafkaException`.
    """
    deadline = time.monotonic() + _VISIBLE_SECONDS
    while (found := cluster.counts([topic])[topic]) < count:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(_FAILED, f"{topic} has {found} partitions instead of {count}"))
        time.sleep(_POLL_SECONDS)
    cluster.renew_reader()


def check_round(cluster: ReshardCluster, location: TopicPartition, number: int) -> None:
    """Check that the journal has this round, after a producer was opened: it has fenced earlier ones.

    A process that opens its producer after the fence of the next execution would not be fenced. Raises
    `OtherRoundError`.
    """
    [found] = cluster.committed([location]).values()
    if read_round(found.text) != number:
        raise OtherRoundError
