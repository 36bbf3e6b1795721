from spark_jobs.runtime.engine.record_order import in_timestamp_order
from spark_jobs.runtime.engine.records import InputRecord


def record(topic: str, partition: int, offset: int, time: int) -> InputRecord:
    return (topic, partition, offset, time, None, None, ())


def order(*records: InputRecord) -> list[tuple[str, int, int]]:
    return [ordered[:3] for ordered in in_timestamp_order(records)]


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


def test_no_records_have_an_empty_order() -> None:
    assert order() == []
