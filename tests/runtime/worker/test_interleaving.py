"""Records of several tasks, merged by time."""

from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.records import Headers, InputRecord
from headwater_spark.worker.interleaving import (
    interleave_records,
    with_task_header,
    without_task_header,
    writer_of,
)

SHARED = frozenset({"app-by-customer-repartition"})
(TOPIC,) = SHARED
OWN: Headers = (("trace", b"1"), ("span", b"2"))


def written(task: int, *times: int, topic: str = TOPIC) -> list[InputRecord]:
    """Return the records of one task as their reader gets them."""
    outputs = [(topic, None, b"key", b"value", time, OWN) for time in times]
    return [
        (topic, 0, 100 * task + number, time, key, value, headers)
        for number, (_, _, key, value, time, headers) in enumerate(with_task_header(outputs, SHARED, task))
    ]


def test_records_of_two_tasks_are_merged_by_time() -> None:
    records = written(1, 0, 100) + written(2, 1, 99)
    assert [each[2:4] for each in interleave_records(records, SHARED)] == [
        (100, 0),
        (200, 1),
        (201, 99),
        (101, 100),
    ]


def test_records_of_one_task_in_several_partitions_keep_the_order_of_each_partition() -> None:
    """A processor may have several partitions."""
    added: list[InputRecord] = [(each[0], 2, *each[2:]) for each in written(1, 60, 90)]
    found = interleave_records([*written(1, 50, 80), *added], SHARED)
    assert [(each[1], each[3]) for each in found] == [(0, 50), (2, 60), (0, 80), (2, 90)]


def test_record_that_is_late_in_its_own_task_stays_late() -> None:
    records = written(1, 50, 10) + written(2, 20, 60)
    assert [each[3] for each in interleave_records(records, SHARED)] == [20, 50, 10, 60]


def test_with_equal_times_the_task_that_wrote_first_is_next() -> None:
    records = [*written(1, 0), *written(2, 10), (TOPIC, 0, 300, 10, b"key", b"value", written(1, 0)[0][6])]
    assert [each[2] for each in interleave_records(records, SHARED)] == [100, 300, 200]
    assert [each[2] for each in interleave_records(written(1, 1) + written(2, 0), SHARED)] == [200, 100]


def test_records_of_other_writers_are_merged_as_those_of_one_more_task() -> None:
    """Another program wrote them: they have no header, or only their own."""
    foreign: list[InputRecord] = [
        (TOPIC, 0, 1, 15, b"key", b"value", OWN),
        (TOPIC, 0, 2, 5, b"key", b"value", ()),
        (TOPIC, 0, 3, 25, b"key", b"value", OWN),
    ]
    orders = written(1, 99, 1, topic="orders")
    found = interleave_records([orders[0], *foreign, *written(2, 20), orders[1]], SHARED)
    (of_task_2,) = interleave_records(written(2, 20), SHARED)
    assert found == [*orders, foreign[0], foreign[1], of_task_2, foreign[2]]


def test_task_header_is_removed_from_records_that_are_read() -> None:
    (record,) = written(1, 0)
    assert record[6] != OWN
    assert interleave_records([record], SHARED)[0][6] == OWN
    assert interleave_records([record], SHARED, keep_headers=True) == [record]
    assert without_task_header(record) == (*record[:6], OWN)
    for headers in ((), OWN):
        without: InputRecord = (TOPIC, 0, 1, 2, b"key", b"value", headers)
        assert without_task_header(without) == without


def test_the_writer_of_a_record_is_in_its_header() -> None:
    assert writer_of(written(12, 0)[0]) == "12"
    for headers in ((), OWN, (("headwater.task", None),)):
        assert writer_of((TOPIC, 0, 1, 2, b"key", b"value", headers)) == ""


def test_records_of_topics_with_one_writer_are_unchanged() -> None:
    records = written(1, 50, 10, topic="orders")
    assert records[0][6] == OWN
    assert interleave_records(records, SHARED) == records


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 20), max_size=6)), max_size=6))
def test_no_record_is_lost_and_each_task_keeps_its_order(drawn: list[tuple[int, list[int]]]) -> None:
    records = [record for task, times in drawn for record in written(task, *times)]
    taken = interleave_records(records, SHARED)
    assert len(taken) == len(records)
    for task in range(3):
        assert [each[3] for each in taken if each[2] // 100 == task] == [
            each[3] for each in records if each[2] // 100 == task
        ]
