"""KIP-287: the state moves to more or fewer processors, whatever is killed, run twice or compacted."""

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import attrs
import pytest
from confluent_kafka import KafkaException
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.model.offset_metadata import (
    DELETING_KEY,
    LINEAGE_KEY,
    MoveMark,
    MovePhase,
    decode_count,
    decode_initial,
    decode_mark,
    decode_metadata,
    decode_positions,
    decode_processor,
    decode_time,
    latest_metadata,
)
from headwater.model.problems import ProblemsError
from headwater_spark.driver.processor_move import entry_copy
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, report_no_progress
from headwater_spark.driver.processor_move.moves import Committed, Move, MoveStep
from headwater_spark.driver.processor_move.state_move import StateMove
from headwater_spark.worker.partition_reader import RecordChunk
from tests.runtime.driver.counting_application import (
    CHANGELOG,
    COUNT,
    INPUT,
    KEYS,
    RefusedError,
    doubled,
    execute,
    move_of,
    new_application,
)
from tests.runtime.driver.killed_moves import kill_and_complete, operations
from tests.runtime.driver.memory_move import KilledError, MemoryCluster


class Moves(RuleBasedStateMachine):
    """Partitions and processors are added, and processors removed, in turns; there are 2 or 3 at first."""

    def __init__(self) -> None:
        super().__init__()
        self.target: int | None = None

    @initialize(processors=st.integers(2, 3), is_linear=st.booleans())
    def set_up(self, processors: int, is_linear: bool) -> None:  # noqa: FBT001 - drawn by name
        self.app = new_application(processors, is_linear=is_linear)

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
    @rule(count=st.integers(1, 3))
    def add_partitions(self, count: int) -> None:
        """Double them for the default partitioner; records that were written before are still processed."""
        self.app.add_partitions(count if self.app.is_linear else self.app.partitions)

    @precondition(lambda self: self.app.processors > self.app.initial and not self.app.is_announced())
    @rule(removed=st.integers(1, 8), operations=st.none() | st.integers(0, 40))
    def move_to_fewer(self, removed: int, operations: int | None) -> None:
        """Not below the initial number; also killed."""
        self._move(-min(removed, self.app.processors - self.app.initial), operations)

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(operations=st.integers(0, 40), added=st.integers(1, 8))
    def kill_a_move(self, operations: int, added: int) -> None:
        self._move(added, operations)

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(added=st.integers(1, 8))
    def move(self, added: int) -> None:
        self._move(added)
        assert not self.app.is_moving()
        assert not self.app.is_announced()

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(operations=st.integers(0, 30), added=st.integers(1, 8))
    def move_twice_at_the_same_time(self, operations: int, added: int) -> None:
        move, left = self._next(added), operations

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
            self._move(added)

    @precondition(lambda self: self.app.processors < self.app.partitions)
    @rule(
        changes=st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=8),
        operations=st.none() | st.integers(0, 60),
        added=st.integers(1, 8),
        later=st.booleans(),
    )
    def expand_while_it_runs(
        self,
        changes: list[tuple[bytes, bool]],
        operations: int | None,
        added: int,
        later: bool,  # noqa: FBT001 - drawn by name
    ) -> None:
        """Also killed, and after a move or an expansion that was killed. Old entries may be deleted later."""
        move = attrs.evolve(self._next(added), is_live=True, deletes_later=later)
        self.app.cluster.kill_after(operations)
        with suppress(KilledError):
            self._expand(move, changes)
        self.app.cluster.kill_after(None)
        self._note_completion()

    def _expand(self, move: Move, changes: list[tuple[bytes, bool]]) -> None:
        cluster = self.app.cluster
        if self.app.is_moving():
            # A move that was announced is completed by the application, any other one by the command.
            is_live = self.app.is_announced()
            execute(
                cluster, attrs.evolve(move, is_live=is_live, deletes_later=is_live and move.deletes_later)
            )
            return
        with cluster.producer(move.producer_name) as producer:
            producer.commit(dict.fromkeys(move.announcements, (0, move.announcement)))
        cluster.expand({CHANGELOG: move.after})
        copy = EntryCopy(move, cluster, report_no_progress)
        with cluster.producer(move.producer_name) as producer:
            copy.advance(producer)
            for key, is_deleted in changes:
                with cluster.alive():
                    self.app.produce(key)
                    self.app.process()
                    if is_deleted:
                        self.app.delete(key)
                copy.advance(producer)
        StateMove(move, cluster, cluster.committed(move.partitions), report_no_progress, copy).run()

    @precondition(lambda self: self.app.counts and not self.app.is_moving())
    @rule(data=st.data(), most=st.integers(0, 5))
    def delete_some_entries_of_keys_that_have_moved(self, data: st.DataObject, most: int) -> None:
        self.app.delete_moved(data.draw(st.integers(0, self.app.processors - 1)), most)

    @precondition(lambda self: self.app.counts and not self.app.is_moving())
    @rule(data=st.data())
    def delete_a_key(self, data: st.DataObject) -> None:
        self.app.process()
        self.app.delete(data.draw(st.sampled_from(sorted(self.app.counts))))

    @rule()
    def compact(self) -> None:
        self.app.cluster.compact(CHANGELOG)

    def _next(self, added: int) -> Move:
        if self.target is None:
            self.target = min(self.app.processors + added, self.app.partitions)
        if not self.app.is_moving():
            self.app.process()
        return self.app.move_to(self.target)

    def _move(self, added: int, operations: int | None = None) -> None:
        move = self._next(added)
        self.app.cluster.kill_after(operations)
        with suppress(KilledError):
            execute(self.app.cluster, move)
        self.app.cluster.kill_after(None)
        self._note_completion()

    def _note_completion(self) -> None:
        """Declare the new number if the last move is complete; one that has changed nothing is forgotten."""
        if self.target is None or self.app.is_moving() or self.app.is_announced():
            return
        texts = [each.text for (topic, _), each in self.app.cluster.offsets.items() if topic == INPUT]
        if (decode_count(texts) or self.app.changelogs) == self.target:
            self.app.complete(self.target)
        self.target = None

    @invariant()
    def each_key_is_with_its_processor(self) -> None:
        """After a move nothing is left at the old processors, or they delete it later; nothing is lost."""
        if self.app.is_moving():
            return
        processors, owners = self.app.processors, self.app.owners
        # Those of an expansion that has begun are not complete.
        changelogs = processors if self.app.is_announced() else self.app.changelogs
        found = {
            (key, task): count
            for task in range(changelogs)
            for key, count in self.app.state(task).items()
            if owners.owner_of_key(key) == task or DELETING_KEY not in self.app.metadata(task).clocks
        }
        assert found == {(key, owners.owner_of_key(key)): count for key, count in self.app.counts.items()}


class ManyMoves(Moves):
    """The same, in a long series."""


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=3 * settings().max_examples, stateful_step_count=20, deadline=None)
TestManyMoves = pytest.mark.soak(ManyMoves.TestCase)
TestManyMoves.settings = settings(max_examples=4_000, stateful_step_count=20, deadline=None)


@pytest.mark.parametrize("most_tombstones", [100_000, 2])
@pytest.mark.parametrize("killed_after", operations(doubled))
def test_a_move_that_is_killed_is_completed_by_the_next_one(
    killed_after: int, most_tombstones: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_copy, "_MAX_TOMBSTONES", most_tombstones)
    app = kill_and_complete(doubled, killed_after)
    assert app.counts == dict.fromkeys(KEYS, 3)
    app.check_owners()


@pytest.mark.parametrize("is_linear", [False, True], ids=["default", "linear-hash"])
def test_one_processor_after_the_other_is_added(*, is_linear: bool) -> None:
    """2 → 3 → 4 → 6 → 7, each time with more partitions or the same ones; entries move to added ones only."""
    app = new_application(is_linear=is_linear)
    partitions = (2, 3, 4, 7, 9) if is_linear else (2, 4, 4, 8, 16)
    for processors, count in zip((2, 3, 4, 6, 7), partitions, strict=True):
        app.add_partitions(count - app.partitions)
        app.process_each_key()
        if processors > app.processors:
            before = {key: app.owners.owner_of_key(key) for key in KEYS}
            added = range(app.processors, processors)
            execute(app.cluster, app.move_to(processors))
            app.complete(processors)
            owners = {key: app.owners.owner_of_key(key) for key in KEYS}
            assert {owners[key] for key in KEYS if owners[key] != before[key]} <= set(added)
            assert set().union(*(app.state(each) for each in added))
    app.process_each_key()
    assert app.counts == dict.fromkeys(KEYS, 6)
    app.check_owners()


@pytest.mark.parametrize("after", [1, 3, 4])
def test_the_state_moves_after_another_client_has_expanded_the_changelog(after: int) -> None:
    """The changelog topic has 4 partitions already: that does not show that 4 processors have the state."""
    app, _ = doubled()
    app.cluster.topics[CHANGELOG] += [[], []]
    move = app.move_to(after)
    read = [*move.partitions, *move.announcements]
    assert move.next_step(app.cluster.committed(read), {CHANGELOG: 4}) is MoveStep.MARK
    execute(app.cluster, move)
    app.complete(after)
    app.process_each_key()
    app.check_owners()
    assert app.counts == dict.fromkeys(KEYS, 3)
    again = app.move_to(after)
    assert again.next_step(app.cluster.committed(read), {CHANGELOG: 4}) is MoveStep.DONE


def test_the_initial_number_is_committed_between_two_doublings_only() -> None:
    app, move = doubled()
    execute(app.cluster, app.move_to(3))
    app.complete(3)
    texts = [app.cluster.offsets[each].text for each in move.partitions]
    assert {decode_initial([text], 3) for text in texts} == {2}
    app.produce(KEYS[0])
    app.process()
    assert decode_initial((app.cluster.offsets[each].text for each in move.partitions), 3) == 2
    execute(app.cluster, app.move_to(4))
    straight, to_four = doubled()
    execute(straight.cluster, to_four)
    texts = [app.cluster.offsets[each].text for each in move.partitions]
    assert {decode_initial([text], 4) for text in texts} == {4}
    assert {len(text) for text in texts} == {
        len(straight.cluster.offsets[each].text) for each in move.partitions
    }


def test_offsets_times_and_positions_stay_and_counting_clocks_are_omitted() -> None:
    app, move = doubled()
    before = dict(app.cluster.offsets)
    execute(app.cluster, move)
    for partition, committed in before.items():
        after = app.cluster.offsets[partition]
        assert after.offset == committed.offset
        assert decode_time(after.text) == decode_time(committed.text)
        assert decode_positions(after.text) == decode_positions(committed.text)
        assert decode_processor(after.text, partition[1]) == partition[1]
        metadata = decode_metadata(after.text)
        assert metadata is not None
        assert COUNT not in metadata.clocks
        assert (LINEAGE_KEY in metadata.clocks) is (partition[1] < 2), "an added processor has no state yet"


def test_added_processors_get_the_lineage_of_their_local_states() -> None:
    app, move = doubled()
    before = decode_metadata(app.cluster.offsets[INPUT, 0].text)
    execute(app.cluster, attrs.evolve(move, lineage=7))
    lineages = []
    for partition in range(4):
        metadata = decode_metadata(app.cluster.offsets[INPUT, partition].text)
        assert metadata is not None
        lineages.append(metadata.clocks[LINEAGE_KEY])
    assert before is not None
    assert lineages == [before.clocks[LINEAGE_KEY], 101, 7, 7]


def test_no_local_state_has_the_version_after_a_move() -> None:
    """Also not a prepared batch that was never committed: it would have the next version."""
    app, move = doubled()
    versions = [
        latest_metadata(app.cluster.offsets[INPUT, each].text for each in (task, task + 2))
        for task in range(2)
    ]
    execute(app.cluster, move)
    for partition in range(4):
        after, before = decode_metadata(app.cluster.offsets[INPUT, partition].text), versions[partition % 2]
        assert after is not None
        assert before is not None
        assert after.version == before.version + 2


def test_a_partition_without_records_gets_its_owner_too() -> None:
    app, move = doubled()
    del app.cluster.offsets[INPUT, 3]
    app.cluster.topics[INPUT][3].clear()
    execute(app.cluster, move)
    assert app.cluster.offsets[INPUT, 3].offset == 0
    assert decode_processor(app.cluster.offsets[INPUT, 3].text, 3) == 3


def test_a_client_that_commits_meanwhile_is_noticed() -> None:
    app, move = doubled()
    observed = app.cluster.committed(move.partitions)
    app.produce(KEYS[0])
    app.process()
    with pytest.raises(ProblemsError, match="app is running"):
        StateMove(move, app.cluster, observed, report_no_progress).run()
    execute(app.cluster, move)


def test_steps_follow_from_what_is_committed() -> None:
    move = move_of(2, 1, 2)
    partitions = move.partitions
    nothing = dict.fromkeys([*partitions, *move.announcements], Committed())
    announced = {**nothing, (CHANGELOG, 0): Committed(7, move.announcement)}
    copying = {each: Committed(0, move.marked_metadata(each[1], "")) for each in partitions}
    clearing = {each: Committed(0, text) for each, text in move.assigned_metadata(copying).items()}
    done = {each: Committed(0, text) for each, text in move.completed({**announced, **clearing}).items()}
    partly = {**nothing, partitions[0]: copying[partitions[0]]}
    steps = [
        move.next_step({**nothing, **committed}, {CHANGELOG: count})
        for committed, count in (
            (nothing, 1),
            (announced, 1),
            (announced, 2),
            (partly, 1),
            (copying, 1),
            (partly, 2),
            (copying, 2),
            (clearing, 2),
            ({**announced, **clearing}, 2),
            ({**announced, **done}, 2),
        )
    ]
    assert steps == [
        MoveStep.MARK,
        MoveStep.MARK,
        MoveStep.MARK,
        MoveStep.MARK,
        MoveStep.EXPAND,
        MoveStep.MARK,
        MoveStep.COPY,
        MoveStep.CLEAR,
        MoveStep.CLEAR,
        MoveStep.DONE,
    ]
    assert decode_mark(copying[INPUT, 1].text) == MoveMark(MovePhase.COPY, 1, 2)
    assert decode_processor(copying[INPUT, 1].text, 1) == 0
    assert decode_mark(clearing[INPUT, 1].text) == MoveMark(MovePhase.CLEAR, 1, 2)
    assert decode_processor(clearing[INPUT, 1].text, 1) == 1


def test_a_key_that_was_deleted_after_an_expansion_was_killed_does_not_return() -> None:
    """Its tombstone may have been compacted away, so only the copy of the key would be left."""
    app, move = doubled()
    cluster = app.cluster
    cluster.expand({CHANGELOG: move.after})
    with cluster.producer(move.producer_name) as producer:
        producer.commit(dict.fromkeys(move.announcements, (0, move.announcement)))
        EntryCopy(move, cluster, report_no_progress).advance(producer)
    copied = set(app.state(2)) | set(app.state(3))
    assert copied
    for key in copied:
        app.delete(key)
    cluster.compact(CHANGELOG)
    execute(cluster, move)
    assert not app.state(2)
    assert not app.state(3)
    assert not app.is_announced()


def test_no_transaction_stays_open_while_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers end one that is open for a minute. Few of many entries may move, or may have been copied."""
    app, move = doubled()
    cluster, now = app.cluster, 0.0
    since: float | None = None
    ages: list[float] = []
    read = MemoryCluster.read

    def slow_read(
        cluster: MemoryCluster, topic: str, partition: int, first: int = 0
    ) -> Iterator[RecordChunk]:
        nonlocal now, since
        for chunk in read(cluster, topic, partition, first):
            since = (now if since is None else since) if cluster.uncommitted else None
            now += 8
            ages.append(0.0 if since is None else now - since)
            yield chunk

    cluster.expand({CHANGELOG: move.after})
    with cluster.producer(move.producer_name) as producer:
        EntryCopy(move, cluster, report_no_progress).advance(producer)  # of a move that was killed
    for _ in range(20):
        app.process_each_key()
    cluster.chunk_records = 1
    monkeypatch.setattr(MemoryCluster, "read", slow_read)
    monkeypatch.setattr(entry_copy, "time", SimpleNamespace(monotonic=lambda: now))
    copy = EntryCopy(move, cluster, report_no_progress)
    with cluster.producer(move.producer_name) as producer:
        copy.advance(producer)
        EntryCopy(move, cluster, report_no_progress).clear(producer)
    assert max(ages) <= 24
