"""What the driver tells the workers of a query's batch, and what they tell of it."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from infra.observe import Connection
from spark_jobs.runtime.engine.program import SubtopologyProgram


@attrs.frozen(kw_only=True)
class WorkOrder:
    """`counts` is topic → number of partitions, sources and global topics, as this batch found them.

    `group` is the consumer group that holds offsets and markers: the application's own, as in Kafka Streams.
    `ends` is (topic, partition) → where the batch ends, if known: transactions' own marks lie before it, too.
    `shared` are the repartition topics that more than one task writes.
    `edition` grows when the programs change, so that tasks are built anew.
    """

    application: str
    group: str
    connection: Connection
    program: SubtopologyProgram
    global_programs: tuple[SubtopologyProgram, ...] = ()
    edition: int = 0
    state_folder: Path
    counts: Mapping[str, int]
    ends: Mapping[tuple[str, int], int] = attrs.field(factory=dict)
    shared: frozenset[str] = frozenset()
    exactly_once: bool = True
    is_native: bool = False
    """Rows come with keys and values as the sink wants them."""

    @property
    def query(self) -> str:
        return self.program.name

    def task(self, partition: int) -> str:
        """Return a task's name: transactional id, client id and what its files are called."""
        return f"{self.application}-{self.query}-{partition}"

    def inputs(self, partition: int) -> tuple[tuple[str, int], ...]:
        """Return the task's input partitions."""
        globals_ = {topic for program in self.global_programs for topic in program.sources}
        return tuple(
            (topic, partition)
            for topic, count in self.counts.items()
            if partition < count and topic not in globals_
        )


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of a task's part of a batch. `skipped` records had been committed before.

    `restored` records came from changelogs first. `dropped` ones were left out by operators or by exception
    handlers (`dropped-records-total`), `passed_over` says what was wrong with the last of the handlers'.
    `migrated` is (topic, wanted partition, its partitions); `poison` says which record cannot be handled.
    """

    partition: int
    read: int = 0
    skipped: int = 0
    written: int = 0
    dropped: int = 0
    passed_over: str | None = None
    stream_time: int = -1
    seconds: float = 0.0
    restored: int = 0
    state_bytes: int = 0
    migrated: tuple[str, int, int] | None = None
    poison: str | None = None
