"""Attempts of an expansion: they are announced on the cluster, so that only one client completes one.

Each attempt of an expansion announces its lineage, so that another client which expands the same application
is noticed. All clients write with the same transactional id. So what is checked while the own producer is
open stays true until it commits, or the commit fails.
"""

from confluent_kafka import KafkaError, KafkaException

from headwater.model.offset_metadata import LINEAGE_KEY, decode_mark, decode_metadata, decode_processor
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move import problems
from headwater_spark.driver.processor_move.entry_copy import MoveCluster
from headwater_spark.driver.processor_move.moves import Move

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001 - the library's own codes begin with an underscore
_MAX_PAUSE_SECONDS = 300.0


class OtherAttemptError(Exception):
    """Another client has begun an attempt: it deletes what this one has copied."""


class ExpandedElsewhereError(ProblemsError):
    """Another client has begun or completed the cut: this one has the wrong number of processors."""


def announce_attempt(move: Move, cluster: MoveCluster) -> None:
    """Announce an attempt of an expansion.

    Raises:
        ExpandedElsewhereError: The cut has begun.
    """
    ends = {each: end for each, (_, end) in cluster.bounds(move.announcements).items()}
    with cluster.producer(move.producer_name) as producer:
        for (_, partition), found in cluster.committed(move.partitions).items():
            owner = decode_processor(found.text, partition)
            if owner not in (None, move.old.owner(partition)) or decode_mark(found.text) is not None:
                raise expanded_elsewhere(move.application)
        producer.commit({each: (end, move.announcement) for each, end in ends.items()})


def check_attempt(move: Move, cluster: MoveCluster) -> None:
    """Raise `OtherAttemptError` if this attempt is not the announced one any more."""
    for found in cluster.committed(move.announcements).values():
        metadata = decode_metadata(found.text)
        if (None if metadata is None else metadata.clocks.get(LINEAGE_KEY)) != move.lineage:
            raise OtherAttemptError


def has_other_attempt(error: OtherAttemptError | KafkaException) -> bool:
    """Return whether another client has begun an attempt, or has opened the producer."""
    return isinstance(error, OtherAttemptError) or error.args[0].code() in _FENCED


def describe_failure(application: str, error: OtherAttemptError | KafkaException) -> Problem:
    """Return the problem of an attempt that has failed."""
    if has_other_attempt(error):
        return problems.another_client_expands(application)
    return problems.kafka_failed(application, str(error.args[0]))


def pause_seconds(first: float, lost: int) -> float:
    """Return how long to wait after `lost` attempts, so that one client completes the expansion."""
    return min(first * 2.0 ** min(lost, 16), _MAX_PAUSE_SECONDS)


def expanded_elsewhere(application: str) -> ExpandedElsewhereError:
    """Return the error of a client that has the wrong number of processors."""
    return ExpandedElsewhereError([problems.expanded_elsewhere(application)])
