"""What the driver sends to the workers for a batch of a query, and what each task returns."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from headwater.kafka import Connection
from headwater.model.offset_metadata import StateVersion
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import Offsets, TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.task_state import task_name_of


def task_folder(state_folder: Path, subtopology: str, task: int) -> Path:
    """Return the folder of a task's local state, in the folder of its application."""
    return state_folder / f"{subtopology}_{task}"


@attrs.frozen(kw_only=True)
class BatchRequest:
    """The request to process a batch; each task of the sub-topology gets the same one.

    `group` is the consumer group of the offsets: the application id, as in Kafka Streams.
    `layout_version` grows when the programs change; tasks of an older version are closed and created again.
    `partition_counts` is topic → number of partitions, for source topics and topics of global tables.
    `end_offsets` is topic partition → offset after the batch, if known; it includes transaction markers.
    `versions` is task → the state after its last batch, if the driver has received the result of each batch
    since then. They were true at `versions_at`, which is `state_proof.boot_seconds()` of this machine.
    A task trusts them for `proof_seconds`: Spark does not run it on another host before twice this time.
    `awaited` are the topic partitions that have more records than the batch has, or whose next record is
    waited for (`max.task.idle.ms`): a task holds records back that may follow them in time.
    `shared_topics` are the repartition topics that more than one task writes to.
    `row_topic` is the topic of all rows, if they have no column for it.
    `is_native`: Spark SQL has evaluated the program, keys and values are as the sink writes them.
    `stream_threads` is the number of stream threads of the client that are alive when the batch begins.
    `processors` assigns input partitions to tasks; None = task and partition have the same number.
    `client` is the process id of the client, if it has to be the active one (`state_proof`); its record is
    in partition 0 of `client_topic`. It was active for certain at `client_at`, in seconds as `versions_at`.
    `renews_offsets`: tasks commit the offsets of all partitions in `end_offsets`, also unchanged ones.
    """

    application: str
    group: str
    connection: Connection
    program: SubtopologyProgram
    global_programs: tuple[SubtopologyProgram, ...] = ()
    layout_version: int = 0
    state_folder: Path
    partition_counts: Mapping[str, int]
    end_offsets: Offsets = attrs.field(factory=dict)
    versions: Mapping[int, StateVersion] = attrs.field(factory=dict)
    versions_at: float = 0.0
    proof_seconds: float = 5.0
    awaited: frozenset[TopicPartition] = frozenset()
    shared_topics: frozenset[str] = frozenset()
    exactly_once: bool = True
    row_topic: str | None = None
    is_native: bool = False
    stream_threads: int = 1
    processors: Processors | None = None
    client: str = ""
    client_topic: str = ""
    client_at: float = 0.0
    renews_offsets: bool = False

    @property
    def subtopology(self) -> str:
        return self.program.name

    @property
    def may_lose_state(self) -> bool:
        """Whether the document accepts that keys move away from their state."""
        return self.program.application.setup.allow_unsafe_expansion

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        widest = max(self._input_counts().values(), default=1)
        return widest if self.processors is None else min(widest, self.processors.count)

    def task_of(self, partition: int) -> int:
        """Return the task that processes an input partition."""
        return partition if self.processors is None else self.processors.owner(partition)

    @property
    def owners(self) -> Sequence[int]:
        """The task of each input partition, in the order of their numbers."""
        return [self.task_of(each) for each in range(max(self._input_counts().values(), default=0))]

    def task_name(self, task: int) -> str:
        """Return the name of a task: its transactional id, client id and the name of its lease file."""
        return task_name_of(self.application, self.subtopology, task)

    def input_partitions(self, task: int) -> tuple[TopicPartition, ...]:
        """Return the input partitions of a task."""
        return tuple(
            (topic, partition)
            for topic, count in self._input_counts().items()
            for partition in ((task,) if self.processors is None else range(count))
            if partition < count and self.task_of(partition) == task
        )

    def _input_counts(self) -> Mapping[str, int]:
        """Return topic → number of partitions, without the topics of global tables."""
        global_topics = {topic for program in self.global_programs for topic in program.sources}
        return {topic: count for topic, count in self.partition_counts.items() if topic not in global_topics}


@attrs.frozen(kw_only=True)
class BatchResult:
    """The result of one task's part of a batch.

    `partition` is the number of the task. `skipped` records had been committed before. `held_back` are
    (topic, partition, first offset that was not processed), because records of other topics may come first.
    `dropped` records were dropped by operators or exception handlers (`dropped-records-total`);
    `handler_message` describes the last record that a handler dropped. `restored` records were read from
    changelog topics first. `opened` is 1 if the task was opened for the batch, because another process had it
    before, or none. `stream_time` is milliseconds, -1 = none.
    `missing_partition` is (topic, required partition, number of partitions): the batch failed because of it.
    `poison_record` describes the record that failed the batch, `poison_handler` is the config key of the
    exception handler whose answer was to fail. `thread` is the name of the stream thread. `state_version` is
    the state of the task after the batch; None = unknown, because the batch failed. `committed` are the
    (topic, partition, offset, metadata) that the batch has committed, with at least once. `read_bytes` are
    (topic, number of records, bytes) of what the task received, where it received columns.
    """

    partition: int
    read: int = 0
    skipped: int = 0
    held_back: tuple[tuple[str, int, int], ...] = ()
    written: int = 0
    dropped: int = 0
    handler_message: str | None = None
    stream_time: int = -1
    restored: int = 0
    opened: int = 0
    state_bytes: int = 0
    missing_partition: tuple[str, int, int] | None = None
    poison_record: str | None = None
    poison_handler: str | None = None
    thread: str = ""
    # It has a random number, so it differs between batches with equal results.
    state_version: StateVersion | None = attrs.field(default=None, eq=False)
    committed: tuple[tuple[str, int, int, str], ...] = attrs.field(default=(), eq=False)
    read_bytes: tuple[tuple[str, int, int], ...] = attrs.field(default=(), eq=False)

    @property
    def first_held_back(self) -> Offsets:
        """Topic partition → first offset that was not processed."""
        return {(topic, partition): offset for topic, partition, offset in self.held_back}

    @property
    def has_failed(self) -> bool:
        """Whether the batch fails because of this task."""
        return self.poison_record is not None or self.missing_partition is not None
