"""Steps over a backlog: what is read, what is waited for, and in which order tasks process it all."""

from collections.abc import Mapping, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.offset_metadata import OffsetMetadata, ReadPositions, decode_positions
from headwater_spark.driver.input.step_planner import DISABLED, PartitionReleases, StepPlanner, divide_records
from headwater_spark.engine.record_order import PartitionGroup, in_timestamp_order
from headwater_spark.engine.records import Commits, InputRecord, TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker.interleaving import (
    in_processing_order,
    processed_part,
    with_task_header,
    without_read,
    without_task_headers,
)
from headwater_spark.worker.task_session import TaskSession

A, B, OTHER = ("a", 0), ("b", 0), ("a", 1)
SHARED = ("shared", 0)
SHARED_TOPICS = frozenset({"shared"})


def test_a_small_batch_is_processed_as_spark_reads_it() -> None:
    planner = StepPlanner(10)
    planner.start({A: 5, B: 5})
    assert planner.fits_one_batch({A: 5, B: 4}, {A: 10, B: 9})
    assert not planner.fits_one_batch({A: 5, B: 4}, {A: 10, B: 10})


def test_a_batch_that_begins_after_the_position_is_read_again() -> None:
    """An earlier start of the query had read further than it could process."""
    planner = StepPlanner(100)
    planner.start({A: 3, B: 5})
    assert not planner.fits_one_batch({A: 4, B: 5}, {A: 6, B: 6})


def test_partitions_are_read_in_equal_shares_first() -> None:
    planner = StepPlanner(100)
    assert planner.next_ranges({A: 20, B: 1000}, 0) == {A: (0, 20), B: (0, 80)}


def test_a_rest_of_large_records_is_left_to_the_next_step() -> None:
    """A rest of small ones is read with the records before it."""
    planner = StepPlanner(100)
    assert planner.next_ranges({A: 110}, 0) == {A: (0, 110)}
    assert planner.next_ranges({A: 10}, 0, 2) == {A: (0, 2)}
    assert planner.next_ranges({A: 40}, 0, 38) == {A: (0, 40)}


def test_partition_that_was_held_back_gets_a_small_share() -> None:
    planner, ends = StepPlanner(160), {A: 1000, B: 1000}
    ranges = planner.next_ranges(ends, 0)
    assert ranges == {A: (0, 80), B: (0, 80)}
    planner.advance(ranges, {B: 0}, ends, 0)
    assert planner.next_ranges(ends, 0) == {A: (80, 222), B: (0, 17)}


def test_partition_with_more_records_is_awaited() -> None:
    planner = StepPlanner(100)
    assert planner.find_awaited({A: (0, 20), B: (0, 80)}, {A: 20, B: 1000}) == {B}


def test_partitions_of_one_processor_wait_for_each_other() -> None:
    ends, added = {A: 20, OTHER: 0}, ("a", 2)
    planner = StepPlanner(100, 0, lambda partition: partition % 2)
    assert planner.find_awaited({A: (0, 20), added: (0, 80)}, {**ends, added: 1000}) == {added}
    assert StepPlanner(100).find_awaited({A: (0, 20), added: (0, 80)}, {**ends, added: 1000}) == frozenset()
    planner = StepPlanner(100, 500, lambda partition: partition % 2)
    assert planner.next_ranges({A: 5, added: 0, OTHER: 3}, 0) == {OTHER: (0, 3)}


def test_a_small_rest_is_read_too() -> None:
    """It may consist of transaction markers only."""
    planner = StepPlanner(100)
    assert planner.next_ranges({A: 1000, B: 66}, 0) == {A: (0, 50), B: (0, 66)}


def test_single_input_partition_is_never_awaited() -> None:
    assert StepPlanner(100).find_awaited({OTHER: (0, 20)}, {OTHER: 1000, A: 7}) == frozenset()


def test_nothing_is_awaited_if_waiting_is_disabled() -> None:
    assert StepPlanner(100, DISABLED).find_awaited({A: (0, 20), B: (0, 80)}, {A: 20, B: 1000}) == frozenset()


def test_records_that_were_deleted_are_skipped() -> None:
    planner = StepPlanner(100)
    planner.start({A: 5, B: 50})
    planner.skip_to({A: 40, B: 40})
    assert planner.next_ranges({A: 60, B: 60}, 0) == {A: (40, 60), B: (50, 60)}
    assert not planner.is_behind({A: 40, B: 50})


def test_a_batch_that_spark_repeats_moves_no_position_back() -> None:
    planner = StepPlanner(100)
    planner.start({A: 50})
    planner.advance({A: (50, 40)}, {}, {A: 60}, 0)
    assert planner.next_ranges({A: 60}, 0) == {A: (50, 60)}


class TestMaxTaskIdle:
    def test_empty_partition_is_waited_for_until_its_time_is_over(self) -> None:
        planner, ends = StepPlanner(100, 500), {A: 10, B: 0}
        assert planner.next_ranges(ends, 1000) == {}
        assert planner.next_ranges(ends, 1499) == {}
        ranges = planner.next_ranges(ends, 1500)
        assert ranges == {A: (0, 10)}
        assert planner.find_awaited(ranges, ends) == {A}

    def test_time_is_not_waited_for_twice(self) -> None:
        """`idlePartitionDeadlines` are removed only by a record of the partition."""
        planner = StepPlanner(100, 500)
        planner.next_ranges({A: 10, B: 0}, 1000)
        planner.advance(planner.next_ranges({A: 10, B: 0}, 1500), {}, {A: 10, B: 0}, 1501)
        assert planner.next_ranges({A: 12, B: 0}, 1502) == {A: (10, 12)}

    def test_new_record_ends_the_wait_and_begins_the_next_one(self) -> None:
        planner, ends = StepPlanner(100, 500), {A: 10, B: 1}
        planner.next_ranges({A: 10, B: 0}, 1000)
        ranges = planner.next_ranges(ends, 1100)
        assert ranges == {A: (0, 10), B: (0, 1)}
        assert planner.find_awaited(ranges, ends) == {A, B}
        planner.advance(ranges, {A: 4}, ends, 1200)
        assert planner.next_ranges(ends, 1699) == {}
        assert planner.next_ranges(ends, 1700) == {A: (4, 10)}

    def test_tasks_do_not_wait_for_each_other(self) -> None:
        planner = StepPlanner(100, 500)
        assert planner.next_ranges({A: 10, B: 0, OTHER: 3}, 1000) == {OTHER: (0, 3)}

    def test_sparks_own_batch_is_used_for_ticks_only(self) -> None:
        planner = StepPlanner(100, 500)
        planner.start({A: 1})
        assert not planner.fits_one_batch({}, {A: 1, B: 0})
        assert planner.fits_one_batch({A: 1, B: 0}, {A: 1, B: 0})

    def test_sparks_own_batch_is_used_if_each_task_has_one_partition(self) -> None:
        planner = StepPlanner(100, 500)
        assert planner.fits_one_batch({}, {A: 60, OTHER: 40})
        assert not planner.fits_one_batch({}, {A: 61, OTHER: 40})


@given(
    st.dictionaries(st.integers(0, 9).map(lambda n: (str(n), 0)), st.integers(1, 1000), min_size=1),
    st.integers(1, 500),
    st.data(),
)
def test_shares_keep_the_limit_and_leave_no_partition_out(
    available: dict[TopicPartition, int], limit: int, data: st.DataObject
) -> None:
    weights = {each: data.draw(st.integers(1, 1000)) for each in available}
    shares = divide_records(available, weights, limit)
    assert shares.keys() == available.keys()
    assert all(1 <= shares[each] <= number for each, number in available.items())
    assert sum(shares.values()) <= max(limit, 0) + len(available)
    assert sum(shares.values()) >= min(limit - len(available), sum(available.values()))


class _Log:
    """Takes the place of a task's producer; `texts` is what the group's offsets would be."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, tuple[int, str]] = {}

    def send(self, records: object) -> int:
        raise AssertionError(records)

    def commit(self, commits: Commits) -> None:
        self.committed |= commits

    def abort(self) -> None:
        raise AssertionError


@attrs.define
class Application:
    """A task with its planner: `records` are its partitions, of which `ends` exist already."""

    records: Mapping[TopicPartition, Sequence[InputRecord]]
    limit: int
    log: _Log = attrs.field(factory=_Log)
    processed: list[InputRecord] = attrs.field(factory=list)
    session: TaskSession = attrs.field(init=False)
    planner: StepPlanner = attrs.field(init=False)

    def start(self) -> None:
        """Begin with the committed offsets, as after a crash."""
        offsets = {each: offset for each, (offset, _) in self.log.committed.items()}
        positions: dict[TopicPartition, ReadPositions] = {
            each: decode_positions(text) for each, (_, text) in self.log.committed.items()
        }
        self.session = TaskSession(self.log, OffsetMetadata(), offsets, positions)
        self.planner = StepPlanner(self.limit)
        self.planner.start(offsets)

    def step(self, ends: Mapping[TopicPartition, int]) -> None:
        ranges = self.planner.next_ranges(ends, 0)
        assert sum(end - first for first, end in ranges.values()) <= self.limit + 17 * len(self.records)
        rows = [
            record
            for each, (first, end) in ranges.items()
            for record in self.records[each]
            if max(first, self.session.offsets.get(each, 0)) <= record[2] < end
        ]
        rows = list(without_read(rows, self.session.positions))
        ordered = in_processing_order(rows, SHARED_TOPICS)
        group = PartitionGroup(
            without_task_headers(ordered, SHARED_TOPICS),
            self.planner.find_awaited(ranges, ends),
            lambda each: each,
        )
        self.processed += group
        part = processed_part(ordered, group.held_back, SHARED_TOPICS, self.session.positions)
        assert not part.held_back.keys() & group.blocked_by
        if part.offsets:
            self.session.commit(part.offsets, part.times, OffsetMetadata(), part.positions)
        self.planner.advance(ranges, part.held_back, ends, 0)


def partition_of(partition: TopicPartition, times: Sequence[int], gaps: Sequence[int]) -> list[InputRecord]:
    """Return records with offsets that leave gaps, as compaction and transactions do."""
    offset, records = 0, list[InputRecord]()
    for time, gap in zip(times, gaps, strict=False):
        offset += gap
        records.append((*partition, offset, time, b"%d" % offset, None, ()))
        offset += 1
    return records


def shared_partition_of(writers: Sequence[tuple[int, Sequence[int]]]) -> list[InputRecord]:
    """Return a partition of a repartition topic: each task has written its records one after the other."""
    outputs = [
        output
        for task, times in writers
        for output in with_task_header(
            [("shared", 0, b"%d" % task, None, time, ()) for time in sorted(times)], SHARED_TOPICS, task
        )
    ]
    return [
        ("shared", 0, offset, time, key, value, headers)
        for offset, (_, _, key, value, time, headers) in enumerate(outputs)
    ]


TIMES = st.lists(st.integers(0, 30), max_size=30)
GAPS = st.lists(st.integers(0, 3), min_size=30, max_size=30)


def ends_of(records: Mapping[TopicPartition, Sequence[InputRecord]]) -> dict[TopicPartition, int]:
    return {each: rows[-1][2] + 1 if rows else 0 for each, rows in records.items()}


@given(TIMES, TIMES, GAPS, GAPS, st.integers(1, 20), st.sets(st.integers(1, 40)))
def test_whole_backlog_is_processed_in_the_order_of_time(  # noqa: PLR0917 - drawn by hypothesis
    a: list[int], b: list[int], a_gaps: list[int], b_gaps: list[int], limit: int, crashes: set[int]
) -> None:
    """For any size of the steps, and with crashes: as if all records had been in memory."""
    records = {A: partition_of(A, a, a_gaps), B: partition_of(B, b, b_gaps)}
    ends = ends_of(records)
    application, steps = Application(records, limit), 0
    application.start()
    while application.planner.is_behind(ends):
        application.step(ends)
        steps += 1
        if steps in crashes:
            application.start()
        assert steps < 1000
    assert application.processed == list(in_timestamp_order([*records[A], *records[B]]))


@given(
    TIMES,
    GAPS,
    st.lists(st.tuples(st.integers(0, 3), TIMES), max_size=5),
    st.integers(1, 20),
    st.sets(st.integers(1, 40)),
)
def test_no_record_of_several_writers_is_lost_or_processed_twice(
    a: list[int], gaps: list[int], writers: list[tuple[int, list[int]]], limit: int, crashes: set[int]
) -> None:
    records = {A: partition_of(A, a, gaps), SHARED: shared_partition_of(writers)}
    ends = ends_of(records)
    application, steps = Application(records, limit), 0
    application.start()
    while application.planner.is_behind(ends):
        application.step(ends)
        steps += 1
        if steps in crashes:
            application.start()
        assert steps < 1000
    shared = [each for each in application.processed if each[:2] == SHARED]
    assert sorted(each[2] for each in shared) == list(range(len(records[SHARED])))
    for task in range(4):
        own = [each[2] for each in shared if each[4] == b"%d" % task]
        assert own == sorted(own)
    assert [each for each in application.processed if each[:2] == A] == records[A]


@pytest.mark.parametrize("limit", [2, 7, 20])
def test_shared_topic_waits_for_older_records_of_another_topic(limit: int) -> None:
    """Two tasks have written the same range of times; the table's rows are older, and more than a step."""
    records = {
        A: partition_of(A, range(50), [0] * 50),
        SHARED: shared_partition_of([(0, range(50, 90)), (1, range(50, 90))]),
    }
    ends = ends_of(records)
    application = Application(records, limit)
    application.start()
    while application.planner.is_behind(ends):
        application.step(ends)
    assert [each[0] for each in application.processed] == ["a"] * 50 + ["shared"] * 80


FIRST, SECOND, ADDED, LATER = ("in", 0), ("in", 1), ("in", 2), ("in", 6)
TWO = Processors(2, 2)


def test_first_partitions_are_read_at_once() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    assert releases.released_ends({FIRST: 7, SECOND: 3}, {}) == {FIRST: 7, SECOND: 3}


def test_added_partition_waits_for_the_end_of_its_parent_when_it_was_found() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    ends = {FIRST: 7, SECOND: 3, ADDED: 5}
    assert releases.released_ends(ends, {FIRST: 6}) == {FIRST: 7, SECOND: 3}
    ends |= {FIRST: 90}
    assert releases.released_ends(ends, {FIRST: 6, SECOND: 3}) == {FIRST: 90, SECOND: 3}
    assert releases.released_ends(ends, {FIRST: 7}) == ends, "not for records that came later"
    assert releases.released_ends(ends, {}) == ends


def test_added_partition_waits_for_all_partitions_that_had_its_keys() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    ends = {FIRST: 7, ADDED: 5, LATER: 1}
    assert releases.released_ends(ends, {FIRST: 7}) == {FIRST: 7, ADDED: 5}
    assert releases.released_ends(ends, {FIRST: 7, ADDED: 4}) == {FIRST: 7, ADDED: 5}
    assert releases.released_ends(ends, {FIRST: 7, ADDED: 5}) == ends


def test_each_topic_has_its_own_parents() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    ends = {FIRST: 7, ADDED: 5, ("more", 0): 0, ("more", 2): 4}
    assert releases.released_ends(ends, {}) == {FIRST: 7, ("more", 0): 0, ("more", 2): 4}


def test_partition_that_was_processed_before_does_not_wait_again() -> None:
    releases = PartitionReleases.from_processed(TWO, [ADDED])
    assert releases.released_ends({FIRST: 7, ADDED: 5}, {}) == {FIRST: 7, ADDED: 5}


def test_the_first_record_of_a_parent_is_awaited() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    assert releases.released_ends({FIRST: 1, ADDED: 5}, {}) == {FIRST: 1}
    assert releases.released_ends({FIRST: 1, ADDED: 5}, {FIRST: 0}) == {FIRST: 1}
    assert releases.released_ends({FIRST: 1, ADDED: 5}, {FIRST: 1}) == {FIRST: 1, ADDED: 5}


def test_a_parent_that_is_not_read_is_not_awaited() -> None:
    releases = PartitionReleases.from_processed(TWO, ())
    assert releases.released_ends({SECOND: 3, ADDED: 5}, {}) == {SECOND: 3, ADDED: 5}
