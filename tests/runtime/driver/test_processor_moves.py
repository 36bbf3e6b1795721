"""KIP-287: the state moves to more processors, whatever is killed, run twice or compacted meanwhile."""

from collections.abc import Mapping
from contextlib import suppress

import attrs
import pytest
from confluent_kafka import KafkaException
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from infra.model.problems import ProblemCode, ProblemsError
from spark_jobs.runtime.driver.processor_move.checks import check_entries, check_input
from spark_jobs.runtime.driver.processor_move.moves import Committed, Move, MovedPart, MoveStep
from spark_jobs.runtime.driver.processor_move.state_move import StateMove
from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition
from spark_jobs.runtime.engine.scaling.marks import MoveMark, MovePhase
from spark_jobs.runtime.engine.scaling.moved_stores import MovedStore
from spark_jobs.runtime.worker.offset_metadata import (
    LINEAGE_KEY,
    OffsetMetadata,
    decode,
    decode_mark,
    decode_positions,
    decode_processor,
    decode_time,
    latest_metadata,
)
from tests.runtime.driver.memory_move import KilledError, MemoryCluster

INPUT, CHANGELOG = "in", "app-counts-changelog"
KEYS = [b"k%d" % each for each in range(20)]
COUNT = "counts/records"
STORE = MovedStore("counts", CHANGELOG, lambda key: key, (COUNT,))


def move_of(partitions: int, before: int, after: int) -> Move:
    return Move("app", before, after, (MovedPart("0", {INPUT: partitions}, (STORE,)),))


def unreported(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


def execute(cluster: MemoryCluster, move: Move) -> None:
    """Move the state as `headwater processors move` does."""
    observed = cluster.committed(move.partitions)
    if move.next_step(observed, cluster.counts(move.changelogs)) is MoveStep.DONE:
        return
    if not any(decode_mark(each.text) for each in observed.values()):
        check_input(move, cluster, observed, unreported)
        check_entries(move, cluster, unreported)
    StateMove(move, cluster, observed, unreported).run()


class RefusedError(Exception):
    """A client does not process records, because a move is not complete."""


@attrs.define
class Application:
    """Counts records per key. Its state is restored for each record; `counts` are the correct ones."""

    cluster: MemoryCluster
    processors: int
    counts: dict[bytes, int] = attrs.field(factory=dict)
    times: dict[int, int] = attrs.field(factory=dict)
    """Processor → its stream time."""
    time: int = 0

    @property
    def partitions(self) -> int:
        return len(self.cluster.topics[INPUT])

    def produce(self, key: bytes) -> None:
        self.time += 1
        partition = default_partition(key, self.partitions)
        self.cluster.write([(INPUT, partition, key, b"", self.time, ())])

    def process(self, *, is_running: bool = False) -> None:
        """Process all records; raises `RefusedError`.

        A client that starts checks all partitions, one that `is_running` those of the task that it opens.
        """
        if not is_running and self.is_moving():
            raise RefusedError
        for partition in range(self.partitions):
            task = partition % self.processors
            mine = [(INPUT, each) for each in range(task, self.partitions, self.processors)]
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
        after = OffsetMetadata(metadata.version + 1, clocks)
        text = after.encode(time, {"w": offset + 5}, None if task == partition else task)
        with self.cluster.producer(f"app-0-{task}") as producer:
            producer.send([(CHANGELOG, task, key, b"%d" % count, time, ())])
            producer.commit({(INPUT, partition): (offset + 1, text)})
        return after

    def state(self, task: int) -> Mapping[bytes, int]:
        entries = {record[4]: record[5] for record in self.cluster.topics[CHANGELOG][task]}
        return {key: int(value) for key, value in entries.items() if key is not None and value is not None}

    def is_moving(self) -> bool:
        return any(decode_mark(each.text) for each in self.cluster.offsets.values())

    def complete(self, after: int) -> None:
        """Remember that the state has moved to `after` processors."""
        self.times = {
            each: self.times[each % self.processors]
            for each in range(after)
            if each % self.processors in self.times
        }
        self.processors = after


def new_application(processors: int = 2) -> Application:
    cluster = MemoryCluster({topic: [[] for _ in range(processors)] for topic in (INPUT, CHANGELOG)})
    return Application(cluster, processors)


class Moves(RuleBasedStateMachine):
    """Two processors at first; partitions and processors are doubled in turns."""

    def __init__(self) -> None:
        super().__init__()
        self.app = new_application()
        self.target: int | None = None

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=8))
    def process_records(self, keys: list[bytes]) -> None:
        for key in keys:
            self.app.produce(key)
        if self.app.is_moving():
            with pytest.raises(RefusedError):
                self.app.process()
        else:
            self.app.process()

    @rule(key=st.sampled_from(KEYS))
    def process_records_in_a_client_that_is_running(self, key: bytes) -> None:
        self.app.produce(key)
        with suppress(RefusedError):
            self.app.process(is_running=True)

    @precondition(lambda self: self.app.partitions < 16)
    @rule()
    def double_partitions(self) -> None:
        for _ in range(self.app.partitions):
            self.app.cluster.topics[INPUT].append([])

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(operations=st.integers(0, 40))
    def kill_a_move(self, operations: int) -> None:
        self.app.cluster.kill_after(operations)
        with suppress(KilledError):
            self._move()
        self.app.cluster.kill_after(None)
        self._note_completion()

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule()
    def move(self) -> None:
        self._move()
        assert not self.app.is_moving()

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(operations=st.integers(0, 30))
    def move_twice_at_the_same_time(self, operations: int) -> None:
        move, left = self._next(), operations

        def second() -> None:
            nonlocal left
            left -= 1
            if left == -1:
                self.app.cluster.kill_after(None)
                execute(self.app.cluster, move)

        self.app.cluster.before_operation = second
        with suppress(KafkaException, ProblemsError):
            execute(self.app.cluster, move)
        self.app.cluster.kill_after(None)
        self._note_completion()
        if self.target is not None:
            self._move()

    @rule()
    def compact(self) -> None:
        self.app.cluster.compact(CHANGELOG)

    def _next(self) -> Move:
        if self.target is None:
            self.target = self.app.processors * 2
        if not self.app.is_moving():
            self.app.process()
        return move_of(self.app.partitions, self.app.processors, self.target)

    def _move(self) -> None:
        execute(self.app.cluster, self._next())
        self._note_completion()

    def _note_completion(self) -> None:
        """Declare the new number if the last move is complete, also if its process was killed just then."""
        if self.target == len(self.app.cluster.topics[CHANGELOG]) and not self.app.is_moving():
            self.app.complete(self.target)
            self.target = None

    @invariant()
    def each_key_is_with_its_processor(self) -> None:
        """After a move nothing is left at the old processors; nothing is lost."""
        if self.app.is_moving():
            return
        changelogs = len(self.app.cluster.topics[CHANGELOG])
        found = {
            (key, task): count for task in range(changelogs) for key, count in self.app.state(task).items()
        }
        processors = self.app.processors
        assert found == {
            (key, default_partition(key, processors)): count for key, count in self.app.counts.items()
        }


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=120, stateful_step_count=20, deadline=None)


def moved() -> tuple[Application, Move]:
    """Return an application whose partitions are doubled, and the move that follows."""
    app = new_application()
    for key in KEYS:
        app.produce(key)
    app.process()
    for _ in range(2):
        app.cluster.topics[INPUT].append([])
    for key in KEYS:
        app.produce(key)
    app.process()
    return app, move_of(4, 2, 4)


def operations_of_a_move() -> int:
    app, move = moved()
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    app.cluster.before_operation = count
    execute(app.cluster, move)
    return calls


@pytest.mark.parametrize("operations", range(operations_of_a_move()))
def test_a_move_that_is_killed_is_completed_by_the_next_one(operations: int) -> None:
    app, move = moved()
    app.cluster.kill_after(operations)
    with pytest.raises(KilledError):
        execute(app.cluster, move)
    app.cluster.kill_after(None)
    execute(app.cluster, move)
    app.complete(4)
    for key in KEYS:
        app.produce(key)
    app.process()
    assert app.counts == dict.fromkeys(KEYS, 3)
    assert {key for task in range(4) for key in app.state(task)} == set(KEYS)
    assert sum(len(app.state(task)) for task in range(4)) == len(KEYS)


def test_offsets_times_and_positions_stay_and_counting_clocks_are_omitted() -> None:
    app, move = moved()
    before = dict(app.cluster.offsets)
    execute(app.cluster, move)
    for partition, committed in before.items():
        after = app.cluster.offsets[partition]
        assert after.offset == committed.offset
        assert decode_time(after.text) == decode_time(committed.text)
        assert decode_positions(after.text) == decode_positions(committed.text)
        assert decode_processor(after.text, partition[1]) == partition[1]
        metadata = decode(after.text)
        assert metadata is not None
        assert COUNT not in metadata.clocks
        assert (LINEAGE_KEY in metadata.clocks) is (partition[1] < 2), "an added processor has no state yet"


def test_no_local_state_has_the_version_after_a_move() -> None:
    """Also not a prepared batch that was never committed: it would have the next version."""
    app, move = moved()
    versions = [
        latest_metadata(app.cluster.offsets[INPUT, each].text for each in (task, task + 2))
        for task in range(2)
    ]
    execute(app.cluster, move)
    for partition in range(4):
        after, before = decode(app.cluster.offsets[INPUT, partition].text), versions[partition % 2]
        assert after is not None
        assert before is not None
        assert after.version == before.version + 2


def test_a_partition_without_records_gets_its_owner_too() -> None:
    app, move = moved()
    del app.cluster.offsets[INPUT, 3]
    app.cluster.topics[INPUT][3].clear()
    execute(app.cluster, move)
    assert app.cluster.offsets[INPUT, 3].offset == 0
    assert decode_processor(app.cluster.offsets[INPUT, 3].text, 3) == 3


def refusal(app: Application, move: Move) -> str:
    """Return the summary of the problem with which a move is refused; nothing has changed then."""
    before = dict(app.cluster.offsets), {name: len(each) for name, each in app.cluster.topics.items()}
    with pytest.raises(ProblemsError) as raised:
        execute(app.cluster, move)
    assert (
        dict(app.cluster.offsets),
        {name: len(each) for name, each in app.cluster.topics.items()},
    ) == before
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.STATE_NOT_MOVABLE
    return problem.summary


def test_records_of_moving_keys_must_be_processed_first() -> None:
    app, move = moved()
    key = next(key for key in KEYS if default_partition(key, 4) == 2)
    app.cluster.write([(INPUT, 0, key, b"", 1, ())])
    assert refusal(app, move).startswith("Partition 0 of in has a record at offset")


def test_unprocessed_records_of_their_partition_are_accepted() -> None:
    app, move = moved()
    for each in KEYS:
        app.produce(each)
    execute(app.cluster, move)
    app.complete(4)
    app.process()
    assert app.counts == dict.fromkeys(KEYS, 3)


def test_processed_records_of_an_added_partition_show_another_partitioner() -> None:
    app, move = moved()
    key = next(key for key in KEYS if default_partition(key, 4) == 0)
    app.cluster.topics[INPUT][2].append((INPUT, 2, 1, 1, key, b"", ()))
    app.cluster.topics[INPUT][2].sort(key=lambda record: record[2])
    assert refusal(app, move).startswith("Partition 2 of in has a record at offset 1")


def test_an_offset_that_brokers_have_forgotten_is_refused() -> None:
    app, move = moved()
    del app.cluster.offsets[INPUT, 1]
    assert refusal(app, move) == "No offset is committed for partition 1 of in, but it has records."


def test_keys_of_other_processors_are_refused() -> None:
    app, move = moved()
    key = next(key for key in KEYS if default_partition(key, 2) == 1)
    app.cluster.write([(CHANGELOG, 0, key, b"1", 1, ())])
    assert refusal(app, move) == (
        f"Partition 0 of {CHANGELOG} has an entry whose key belongs to processor 1."
    )


def test_partitions_of_other_processors_are_refused() -> None:
    app, move = moved()
    committed = app.cluster.offsets[INPUT, 2]
    app.cluster.offsets[INPUT, 2] = attrs.evolve(committed, text=OffsetMetadata(1).encode(0))
    assert refusal(app, move) == (
        "Partition 2 of in was processed by processor 2, which 2 processors do not assign it to."
    )


def test_unprocessed_subscriptions_are_refused() -> None:
    app, move = moved()
    app.produce(KEYS[0])
    part = attrs.evolve(move.parts[0], drained=frozenset({INPUT}))
    assert refusal(app, attrs.evolve(move, parts=(part,))).endswith("has records that are not processed.")


def test_a_client_that_commits_meanwhile_is_noticed() -> None:
    app, move = moved()
    observed = app.cluster.committed(move.partitions)
    app.produce(KEYS[0])
    app.process()
    with pytest.raises(ProblemsError, match="app is running"):
        StateMove(move, app.cluster, observed, unreported).run()
    execute(app.cluster, move)


def test_steps_follow_from_what_is_committed() -> None:
    move = move_of(2, 1, 2)
    partitions = move.partitions
    copying = {each: Committed(0, move.marked(each[1], "")) for each in partitions}
    clearing = {each: Committed(0, text) for each, text in move.assigned(copying).items()}
    done = {each: Committed(0, text) for each, text in move.completed(clearing).items()}
    nothing = dict.fromkeys(partitions, Committed())
    partly = {**nothing, partitions[0]: copying[partitions[0]]}
    steps = [
        move.next_step(committed, {CHANGELOG: count})
        for committed, count in (
            (nothing, 1),
            (partly, 1),
            (copying, 1),
            (partly, 2),
            (copying, 2),
            (clearing, 2),
            (done, 2),
        )
    ]
    assert steps == [
        MoveStep.MARK,
        MoveStep.MARK,
        MoveStep.EXPAND,
        MoveStep.MARK,
        MoveStep.COPY,
        MoveStep.CLEAR,
        MoveStep.DONE,
    ]
    assert decode_mark(copying[INPUT, 1].text) == MoveMark(MovePhase.COPY, 1, 2)
    assert decode_processor(copying[INPUT, 1].text, 1) == 0
    assert decode_mark(clearing[INPUT, 1].text) == MoveMark(MovePhase.CLEAR, 1, 2)
    assert decode_processor(clearing[INPUT, 1].text, 1) == 1
