"""What a task of Spark does in a pass of a reshard: a pass of `EntryMove`, for one share of the partitions.

A task knows nothing of other passes: Spark may execute the next one elsewhere. It opens a producer, which
fences the earlier tasks with the same share. Then it reads from the journal whether it may write. Spark may
execute a task again, for example if an executor is lost; then the first one may still write. Only the driver
can fence it and delete what it has written, so a repeated task returns without doing anything.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard.entry_checks import check_entries
from headwater_spark.driver.reshard.entry_move import EntryMove, Share
from headwater_spark.driver.reshard.entry_passes import FAILED, await_partitions, check_round, run_pass
from headwater_spark.driver.reshard.plan import Reshard, worker_names
from headwater_spark.driver.reshard.problems import kafka_failed
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner
from headwater_spark.engine.program.user_code import load_class
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.worker.interpreter import cheap_collections

_ATTEMPTS = 4
"""How often Spark executes a share of a pass that only reads: Spark's default."""


@attrs.frozen
class Result:
    """What the pass has returned for a share."""

    value: object


@attrs.frozen
class Refusal:
    """Why the reshard cannot continue: problems, or a partitioner that failed (name, reason)."""

    problems: tuple[Problem, ...] = ()
    partitioner: tuple[str, str] | None = None

    def error(self) -> Exception:
        """Return what the driver raises."""
        return (
            ProblemsError(self.problems) if self.partitioner is None else PartitionerError(*self.partitioner)
        )


class SharesFailedError(KafkaException):
    """Shares have failed, but not with an error of Kafka: for example, executors cannot import a module."""

    def __init__(self, reason: str) -> None:
        super().__init__(KafkaError(FAILED, reason))


@attrs.frozen
class Failure:
    """Why a share has to be executed again: Kafka has failed (`code`), or Spark, or the task."""

    reason: str
    code: int = FAILED

    def error(self) -> KafkaException:
        """Return what the driver raises if it gives up."""
        if self.code == FAILED:
            return SharesFailedError(self.reason)
        return KafkaException(KafkaError(self.code, self.reason))


Answer = Result | Refusal | Failure


@attrs.frozen
class ImportedFunction:
    """A user's function that is imported where it is called: only its name is sent to an executor."""

    name: str

    def __call__(self, key: bytes, partitions: int) -> object:
        try:
            function = load_class(self.name)
        except Exception as error:
            raise LookupError(f"an executor cannot import it: {type(error).__name__}: {error}") from error
        return function(key, partitions)


@attrs.frozen(kw_only=True)
class CheckPass:
    """The check of all entries before a reshard; `shares` is the number of tasks."""

    connection: Connection
    reshard: Reshard
    shares: int
    writes = False

    def execute(self, share: Share) -> Sequence[Problem]:
        with _open_cluster(self.connection, self.reshard.application) as cluster:
            return check_entries(self.reshard, cluster, report_no_progress, share)


@attrs.frozen(kw_only=True)
class MovePass:
    """A pass over one topic. `location` and `round` are of the `WritingRound`.

    `sources` limits `delete_leftovers` to the entries of these partitions.
    """

    connection: Connection
    application: str
    method: str
    transfer: Transfer
    ends: Mapping[int, int]
    limit: int | None
    shares: int
    location: TopicPartition
    round: int
    sources: frozenset[int] | None = None

    @property
    def writes(self) -> bool:
        return self.method != "find_totals"

    def execute(self, share: Share) -> object:
        with _open_cluster(self.connection, self.application) as cluster:
            await_partitions(cluster, self.transfer.target, self.transfer.after)
            move = EntryMove(
                self.transfer,
                cluster,
                self.ends,
                self.limit,
                report_no_progress,
                share=share,
                executes_all=False,
            )
            if not self.writes:
                return move.find_totals()
            name = worker_names(self.application, self.shares)[share.number]
            with cluster.producer(name) as producer:
                check_round(cluster, self.location, self.round)
                return run_pass(move, self.method, producer, self.sources)


Pass = CheckPass | MovePass


def run_share(request: Pass, number: int, attempt: int) -> Answer:
    """Execute a pass for a share; `attempt` is how often Spark has executed the task before."""
    if attempt >= (1 if request.writes else _ATTEMPTS):
        return Failure("Spark has repeated a task, because an executor or a Python worker has ended")
    try:
        with cheap_collections():
            return Result(request.execute(Share(number, request.shares)))
    except ProblemsError as error:
        return Refusal(tuple(error.problems))
    except PartitionerError as error:
        return Refusal(partitioner=(error.name, error.reason))
    except KafkaException as error:
        return Failure(error.args[0].str(), error.args[0].code())
    except Exception as error:  # noqa: BLE001 - the driver raises it
        return Failure(f"a task failed: {type(error).__name__}: {error}")


def sent_transfer(transfer: Transfer) -> Transfer:
    """Return the transfer as it is sent to executors, which import the functions of users themselves."""
    if transfer.partitioner is None:
        return transfer
    name = transfer.partitioner.name
    return attrs.evolve(transfer, partitioner=UserPartitioner(name, ImportedFunction(name)))


def _open_cluster(connection: Connection, application: str) -> "closing[KafkaMoveCluster]":
    return closing(KafkaMoveCluster(connection, application, kafka_failed))
