"""An application that counts records in a cluster in memory, and moves of its state."""

from collections.abc import Mapping

import attrs

from headwater.model.offset_metadata import (
    DELETING_KEY,
    LINEAGE_KEY,
    OffsetMetadata,
    decode_count,
    decode_initial,
    decode_mark,
    decode_processor,
    latest_metadata,
)
from headwater_spark.driver.processor_move.checks import check_entries, check_input
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed, Move, MovedPart, MoveStep
from headwater_spark.driver.processor_move.state_move import StateMove
from headwater_spark.engine.partitioners.hashing import default_partition, linear_partition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from tests.runtime.driver.memory_move import MemoryCluster

INPUT, CHANGELOG = "in", "app-counts-changelog"
KEYS = [b"k%d" % each for each in range(20)]
COUNT = "counts/records"
STORE = MovedStore("counts", CHANGELOG, lambda key: key, (COUNT,))


def move_of(
    partitions: int, before: int, after: int, initial: int | None = None, widest: int | None = None
) -> Move:
    part = MovedPart("0", {INPUT: partitions}, (STORE,))
    return Move(
        "app", before, after, (part,), known_initial=initial, widest=before if widest is None else widest
    )


def execute(cluster: MemoryCluster, move: Move) -> None:
    """Move the state as `headwater processors move` does."""
    observed = cluster.committed([*move.partitions, *move.announcements])
    if move.next_step(observed, cluster.counts(move.changelogs)) is MoveStep.DONE:
        return
    if not any(decode_mark(each.text) for each in observed.values()):
        check_input(move, cluster, observed, report_no_progress)
        check_entries(move, cluster, observed, report_no_progress)
    StateMove(move, cluster, observed, report_no_progress).run()


class RefusedError(Exception):
    """A client does not process records, because a move is not complete."""


@attrs.define
class Application:
    """Counts records per key. Its state is restored for each record; `counts` are the correct ones.

    Its partitions and processors were `initial` at first. Producers use `linear-hash`, or the default.
    """

    cluster: MemoryCluster
    processors: int
    initial: int
    is_linear: bool = False
    counts: dict[bytes, int] = attrs.field(factory=dict)
    times: dict[int, int] = attrs.field(factory=dict)
    """Processor → its stream time."""
    time: int = 0

    @property
    def partitions(self) -> int:
        return len(self.cluster.topics[INPUT])

    @property
    def owners(self) -> Processors:
        return Processors.from_count(
            self.processors, self.initial, is_recorded=self.changelogs > self.processors
        )

    @property
    def changelogs(self) -> int:
        """The partition count of the changelog topic."""
        return len(self.cluster.topics[CHANGELOG])

    def add_partitions(self, count: int) -> None:
        for _ in range(count):
            self.cluster.topics[INPUT].append([])

    def move_to(self, after: int) -> Move:
        """Return a move as the runtime opens it: the initial number is what the offsets show."""
        texts = [each.text for (topic, _), each in self.cluster.offsets.items() if topic == INPUT]
        initial = decode_initial(texts, self.processors) or self.initial
        assert decode_count(texts) in (None, self.processors, after)
        return move_of(self.partitions, self.processors, after, initial, self.changelogs)

    def produce(self, key: bytes) -> None:
        self.time += 1
        if self.is_linear:
            partition = linear_partition(key, self.initial, self.partitions)
        else:
            partition = default_partition(key, self.partitions)
        self.cluster.write([(INPUT, partition, key, b"", self.time, ())])

    def process_each_key(self) -> None:
        """Produce a record of each key, and process all records."""
        for key in KEYS:
            self.produce(key)
        self.process()

    def process(self, *, is_running: bool = False) -> None:
        """Process all records; raises `RefusedError`.

        A client that starts checks all partitions, one that `is_running` those of the task that it opens.
        """
        if not is_running and self.is_moving():
            raise RefusedError
        for partition in range(self.partitions):
            task = self.owners.owner(partition)
            mine = [(INPUT, each) for each in range(self.partitions) if self.owners.owner(each) == task]
            committed = self.cluster.committed(mine)
            if any(decode_mark(each.text) for each in committed.values()):
                raise RefusedError
            for (_, each), found in committed.items():
                assert decode_processor(found.text, each) in (None, task)
            metadata = latest_metadata(each.text for each in committed.values()) or OffsetMetadata()
            assert metadata.clocks.get("task", 0) == self.times.get(task, 0), "stream time"
            offset = committed[INPUT, partition].offset or 0
            for record in self.cluster.topics[INPUT][partition]:
                if record[2] >= offset:
                    metadata = self._process(task, partition, record[4] or b"", record[2], metadata)

    def _process(
        self, task: int, partition: int, key: bytes, offset: int, metadata: OffsetMetadata
    ) -> OffsetMetadata:
        stored = self.state(task)
        self.counts[key] = self.counts.get(key, 0) + 1
        count = stored.get(key, 0) + 1
        assert count == self.counts[key], (key, task, stored)
        time = max(self.time, self.times.get(task, 0))
        self.times[task] = time
        lineage = metadata.clocks.get(LINEAGE_KEY, 100 + task)
        clocks = {"task": time, COUNT: len({*stored, key}), LINEAGE_KEY: lineage}
        if DELETING_KEY in metadata.clocks:
            clocks[DELETING_KEY] = 1
        after = OffsetMetadata(metadata.version + 1, clocks)
        text = self._text(after, task, partition, time, offset)
        with self.cluster.producer(f"app-0-{task}") as producer:
            producer.send([(CHANGELOG, task, key, b"%d" % count, time, ())])
            producer.commit({(INPUT, partition): (offset + 1, text)})
        return after

    def _text(self, after: OffsetMetadata, task: int, partition: int, time: int, offset: int) -> str:
        owner, owners = None if task == partition else task, self.owners
        return after.encode(
            time,
            {"w": offset + 5},
            owner,
            initial=owners.recorded_initial,
            count=owners.recorded_count,
            declared=owners.count,
        )

    def metadata(self, task: int) -> OffsetMetadata:
        mine = [(INPUT, each) for each in range(self.partitions) if self.owners.owner(each) == task]
        texts = [each.text for each in self.cluster.committed(mine).values()]
        return latest_metadata(texts) or OffsetMetadata()

    def delete_moved(self, task: int, most: int) -> None:
        """Delete entries of keys that have moved from a task, as that does with a batch."""
        metadata, owners = self.metadata(task), self.owners
        if DELETING_KEY not in metadata.clocks:
            return
        others = [key for key in self.state(task) if owners.owner_of_key(key) != task]
        clocks = dict(metadata.clocks)
        if len(others) <= most:
            del clocks[DELETING_KEY]
        after = OffsetMetadata(metadata.version + 1, clocks)
        offset = self.cluster.offsets[INPUT, task].offset or 0
        with self.cluster.producer(f"app-0-{task}") as producer:
            producer.send((CHANGELOG, task, key, None, self.time, ()) for key in others[:most])
            producer.commit({(INPUT, task): (offset, self._text(after, task, task, self.time, offset))})

    def delete(self, key: bytes) -> None:
        """Delete the count of a key, as its task."""
        del self.counts[key]
        task = self.owners.owner_of_key(key)
        with self.cluster.producer(f"app-0-{task}") as producer:
            producer.send([(CHANGELOG, task, key, None, self.time, ())])
            producer.commit({})

    def state(self, task: int) -> Mapping[bytes, int]:
        entries = {record[4]: record[5] for record in self.cluster.topics[CHANGELOG][task]}
        return {key: int(value) for key, value in entries.items() if key is not None and value is not None}

    def check_owners(self) -> None:
        """Check that the state of each processor has the keys that belong to it, and no other one."""
        for task in range(self.changelogs):
            assert set(self.state(task)) == {key for key in KEYS if self.owners.owner_of_key(key) == task}

    def is_moving(self) -> bool:
        return any(
            decode_mark(each.text) for (topic, _), each in self.cluster.offsets.items() if topic == INPUT
        )

    def is_announced(self) -> bool:
        return decode_mark(self.cluster.offsets.get((CHANGELOG, 0), Committed()).text) is not None

    def complete(self, after: int) -> None:
        """Remember that the state has moved to `after` processors."""
        before, self.processors = self.owners, after
        merged: dict[int, int] = {}
        for each in range(after):
            sources = {before.owner(each), *(p for p in range(before.count) if self.owners.owner(p) == each)}
            if times := [self.times[source] for source in sources if source in self.times]:
                merged[each] = max(times)
        self.times = merged


def new_application(processors: int = 2, *, is_linear: bool = False) -> Application:
    cluster = MemoryCluster({topic: [[] for _ in range(processors)] for topic in (INPUT, CHANGELOG)})
    return Application(cluster, processors, processors, is_linear)


def doubled() -> tuple[Application, Move]:
    """Return an application whose partitions are doubled, and the move that follows."""
    app = new_application()
    app.process_each_key()
    app.add_partitions(2)
    app.process_each_key()
    return app, move_of(4, 2, 4)
