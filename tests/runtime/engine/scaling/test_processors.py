"""Partitions of a sub-topology belong to its processors; added partitions have keys of earlier ones."""

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition
from spark_jobs.runtime.engine.scaling.processors import Processors


def test_added_partitions_belong_to_the_processors_of_their_parents() -> None:
    processors = Processors(2, 2)
    assert [processors.owner(each) for each in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert [list(processors.earlier(each)) for each in (0, 1, 2, 3, 5, 6)] == [
        [],
        [],
        [0],
        [1],
        [1],
        [2, 0],
    ]


def test_each_partition_is_a_processor_at_first() -> None:
    assert [Processors(3, 3).owner(each) for each in range(3)] == [0, 1, 2]


@given(st.binary(), st.integers(1, 12), st.lists(st.integers(0, 5), min_size=2, max_size=5))
def test_doubled_partitions_move_no_key_to_another_processor(
    key: bytes, initial: int, doublings: list[int]
) -> None:
    """The default partitioner of ordinary producers; the earlier partitions are those the key was in."""
    processors = Processors(initial, initial)
    partitions = [default_partition(key, initial * 2**doubling) for doubling in sorted(doublings)]
    assert {processors.owner(partition) for partition in partitions} == {default_partition(key, initial)}
    assert {*partitions[:-1]} <= {partitions[-1], *processors.earlier(partitions[-1])}
