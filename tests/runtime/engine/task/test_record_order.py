"""The order of records across partitions, compared with a model of Kafka Streams' `PartitionGroup`."""

from collections import deque
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.record_order import PartitionGroup, in_timestamp_order
from headwater_spark.engine.records import InputRecord, TopicPartition
from tests.runtime.engine.task.topologies import create_task

A, B, C = ("a", 0), ("b", 0), ("c", 0)


def record(topic: str, partition: int, offset: int, time: int) -> InputRecord:
    return (topic, partition, offset, time, None, None, ())


def order(*records: InputRecord) -> list[tuple[str, int, int]]:
    return [ordered[:3] for ordered in in_timestamp_order(records)]


def group_of(
    awaited: set[TopicPartition], times: Mapping[TopicPartition, Sequence[int]]
) -> PartitionGroup[InputRecord]:
    records = [
        record(*partition, n, time) for partition, each in times.items() for n, time in enumerate(each)
    ]
    return PartitionGroup(records, awaited, lambda each: each if each[3] >= 0 else None)


def test_records_of_one_partition_are_ordered_by_offset_not_by_timestamp() -> None:
    assert order(record("a", 0, 0, 9), record("a", 0, 1, 3)) == [("a", 0, 0), ("a", 0, 1)]


def test_the_head_with_the_smallest_timestamp_is_first() -> None:
    ordered = order(
        record("a", 0, 0, 5),
        record("a", 0, 1, 1),
        record("b", 0, 0, 3),
        record("b", 0, 1, 6),
        record("a", 1, 0, 4),
    )
    assert ordered == [("b", 0, 0), ("a", 1, 0), ("a", 0, 0), ("a", 0, 1), ("b", 0, 1)]


def test_heads_with_equal_timestamps_are_ordered_by_topic_and_partition() -> None:
    ordered = order(record("b", 0, 0, 1), record("a", 1, 0, 1), record("a", 0, 0, 1))
    assert ordered == [("a", 0, 0), ("a", 1, 0), ("b", 0, 0)]


@pytest.mark.parametrize(("table", "joined"), [("a", [b"12"]), ("z", [b"10"])])
def test_a_join_of_equal_timestamps_depends_on_the_names_of_the_topics(
    table: str, joined: list[bytes]
) -> None:
    task = create_task(
        f"- table: {{topic: {table}, as: rows, serdes: {{key: string, value: string}}}}\n"
        "- stream: {topic: in, serdes: {key: string, value: string}}\n"
        "- join: {with: rows, value: left + right, serdes: {key: string, value: string}}\n"
        "- to: {topic: out, serdes: {key: string, value: string}}\n"
    )
    records: list[InputRecord] = [
        ("in", 0, 0, 7, b"k", b"1", ()),
        (table, 0, 0, 5, b"k", b"0", ()),
        (table, 0, 1, 7, b"k", b"2", ()),
    ]
    assert [each[3] for each in task.process(records, 9) if each[0] == "out"] == joined


def test_no_records_have_an_empty_order() -> None:
    assert order() == []


def test_records_that_may_follow_an_awaited_partition_are_held_back() -> None:
    group = group_of({A}, {A: [1, 3], B: [2, 4, 5]})
    assert [each[3] for each in group] == [1, 2, 3]
    assert group.held_back == {B: 2}
    assert group.blocked_by == {A}


def test_an_awaited_partition_without_records_holds_everything_back() -> None:
    group = group_of({A}, {B: [2, 4]})
    assert list(group) == []
    assert group.held_back == {B: 2}
    assert group.blocked_by == {A}


def test_a_skipped_record_is_not_held_back() -> None:
    """The timestamp extractor returns no record; the next one is the head."""
    group = group_of({A}, {A: [-1], B: [-1, 2, -1]})
    assert list(group) == []
    assert group.held_back == {B: 2}


class Model:
    """`PartitionGroup` and `RecordQueue`: `lags` counts the records that were not fetched yet."""

    def __init__(
        self, fetched: Mapping[TopicPartition, Sequence[int]], lags: Mapping[TopicPartition, int]
    ) -> None:
        self.queues = {partition: deque(times) for partition, times in fetched.items()}
        self.lags = lags

    def is_ready(self) -> bool:
        """Return what `readyToProcess` does with `max.task.idle.ms` 0."""
        return all(queue or not self.lags[each] for each, queue in self.queues.items())

    def run(self) -> list[tuple[TopicPartition, int]]:
        processed = []
        while self.is_ready() and any(self.queues.values()):
            heads = [(queue[0], each) for each, queue in self.queues.items() if queue]
            time, first = min(heads)
            self.queues[first].popleft()
            processed.append((first, time))
        return processed


TIMES = st.lists(st.integers(0, 20), max_size=8)


@given(
    st.fixed_dictionaries({A: TIMES, B: TIMES, C: TIMES}),
    st.fixed_dictionaries({each: st.integers(0, 1) for each in (A, B, C)}),
)
def test_order_is_that_of_kafka_streams(
    fetched: dict[TopicPartition, list[int]], lags: dict[TopicPartition, int]
) -> None:
    model = Model(fetched, lags)
    group = group_of({each for each, lag in lags.items() if lag}, fetched)
    assert [(each[:2], each[3]) for each in group] == model.run()
    assert group.held_back == {each: len(queue) for each, queue in model.queues.items() if queue}


@given(st.fixed_dictionaries({A: TIMES, B: TIMES, C: TIMES}))
def test_nothing_is_held_back_if_nothing_is_awaited(fetched: dict[TopicPartition, list[int]]) -> None:
    group = group_of(set(), fetched)
    records = [record(*each, n, time) for each, times in fetched.items() for n, time in enumerate(times)]
    assert list(group) == list(in_timestamp_order(records))
    assert not group.held_back
