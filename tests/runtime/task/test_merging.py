from spark_jobs.runtime.engine.merging import merged
from spark_jobs.runtime.engine.records import InputRecord


def record(topic: str, partition: int, offset: int, time: int) -> InputRecord:
    return (topic, partition, offset, time, None, None, ())


def order(*records: InputRecord) -> list[tuple[str, int, int]]:
    return [taken[:3] for taken in merged(records)]


def test_one_partition_is_taken_by_offset_whatever_its_times() -> None:
    assert order(record("a", 0, 0, 9), record("a", 0, 1, 3)) == [("a", 0, 0), ("a", 0, 1)]


def test_the_head_with_the_smallest_time_goes_first() -> None:
    taken = order(
        record("a", 0, 0, 5),
        record("a", 0, 1, 1),
        record("b", 0, 0, 3),
        record("b", 0, 1, 6),
        record("a", 1, 0, 4),
    )
    assert taken == [("b", 0, 0), ("a", 1, 0), ("a", 0, 0), ("a", 0, 1), ("b", 0, 1)]


def test_heads_of_one_time_are_taken_by_topic_and_partition() -> None:
    taken = order(record("b", 0, 0, 1), record("a", 1, 0, 1), record("a", 0, 0, 1))
    assert taken == [("a", 0, 0), ("a", 1, 0), ("b", 0, 0)]


def test_nothing_gives_nothing() -> None:
    assert order() == []
