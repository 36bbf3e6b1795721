"""The task of a sub-topology that Spark SQL has already evaluated: it forwards the rows to the sink."""

from collections.abc import Collection, Iterable

from headwater_spark.engine.error_handlers import ErrorHandlers
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.record_order import PartitionGroup, in_timestamp_order
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.refused_output import RefusedRecordError
from headwater_spark.worker.interleaving import interleaved
from headwater_spark.worker.record_sender import OutputColumns
from headwater_spark.worker.refusals import RefusedRecords
from headwater_spark.worker.task_input import ColumnInput, TaskInput


class NativeTask:
    """The part of the engine's `Task` that `OpenTask` needs."""

    def __init__(self, program: SubtopologyProgram, refused: RefusedRecords) -> None:
        (self._topic,) = program.sinks.values()
        self._refused = refused
        self._error_handlers = ErrorHandlers(program.settings, _no_dead_letter)

    def process(self, input_: TaskInput, shared_topics: frozenset[str]) -> Iterable[OutputRecord]:
        """Return the output records with timestamps and headers, which Spark's own sink cannot write."""
        topic = self._topic
        if (
            isinstance(input_, ColumnInput)
            and input_.has_columns
            and not self._refused
            and input_.topic_partition[0] not in shared_topics
        ):
            return OutputColumns(topic, input_.columns())
        return self._outputs(in_timestamp_order(interleaved(input_.records(), shared_topics)))

    def process_group(
        self, records: Iterable[InputRecord], awaited: Collection[TopicPartition], _: int
    ) -> tuple[list[OutputRecord], PartitionGroup[InputRecord]]:
        """Return the output records and the group, as the engine's `Task.process_group` does."""
        group = PartitionGroup(records, awaited, _with_own_timestamp)
        return list(self._outputs(group)), group

    def _outputs(self, records: Iterable[InputRecord]) -> Iterable[OutputRecord]:
        topic, records = self._topic, list(records)
        self._check(records)
        return ((topic, None, key, value, time, headers) for _, _, _, time, key, value, headers in records)

    def _check(self, records: Iterable[InputRecord]) -> None:
        """Raise `PoisonRecordError` for a record that the brokers refuse."""
        for record in records if self._refused else ():
            _, _, _, time, key, value, headers = record
            reason = self._refused.reason((self._topic, None, key, value, time, headers))
            if reason is not None:
                self._error_handlers.production_failed(record, self._topic, RefusedRecordError(reason))

    @staticmethod
    def take_dropped() -> tuple[int, str | None]:
        """Return that no record was dropped: Spark SQL's filters are filters, and nothing can fail."""
        return 0, None

    def close(self) -> None:
        """Do nothing: a native task holds no resources."""


def _no_dead_letter(record: OutputRecord) -> None:
    """Reject `record`: a program with a handler that continues is not native."""
    raise AssertionError(record)


def _with_own_timestamp(record: InputRecord) -> InputRecord:
    return record
