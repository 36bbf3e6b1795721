"""Partitions of a sub-topology belong to its processors; added partitions have keys of earlier ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.partitioners.hashing import default_partition, linear_partition
from headwater_spark.engine.scaling.processors import Processors


def test_added_partitions_belong_to_the_processors_of_their_parents() -> None:
    processors = Processors(2, 2)
    assert [processors.owner(each) for each in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert [list(processors.earlier_partitions(each)) for each in (0, 1, 2, 3, 5, 6)] == [
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
    assert {*partitions[:-1]} <= {partitions[-1], *processors.earlier_partitions(partitions[-1])}


@given(st.binary(), st.integers(1, 12), st.integers(0, 40), st.integers(0, 40), st.integers(0, 4))
def test_the_owner_of_the_partition_of_a_key_is_the_processor_of_the_key(
    key: bytes, initial: int, processors: int, partitions: int, doublings: int
) -> None:
    """With linear-hash at any partition count, with other producers at doubled ones."""
    count = initial + processors
    owners = Processors(initial, count)
    partition = linear_partition(key, initial, count + partitions)
    assert owners.owner(partition) == owners.owner_of_key(key)
    doubled = initial
    while doubled < count:
        doubled *= 2
    doubled *= 2**doublings
    assert owners.owner(default_partition(key, doubled)) == owners.owner_of_key(key)
    assert Processors.from_count(count, doubled).owner_of_key(key) == owners.owner_of_key(key)


@given(st.binary(), st.integers(1, 12), st.integers(0, 40), st.integers(1, 40))
def test_keys_move_to_added_processors_only(key: bytes, initial: int, processors: int, added: int) -> None:
    before = Processors(initial, initial + processors)
    after = Processors.from_count(before.count + added, before.initial)
    assert after.owner_of_key(key) in {before.owner_of_key(key), *range(before.count, after.count)}


def test_partitions_with_the_number_of_a_processor_are_its_own() -> None:
    """Responses of foreign-key joins name the processor, and are sent to the partition with its number."""
    for count in range(3, 25):
        assert [Processors(3, count).owner(each) for each in range(count)] == list(range(count))


@pytest.mark.parametrize(
    ("processors", "initial"),
    [(Processors(4, 4), None), (Processors(4, 6), 4), (Processors(2, 6), 4), (Processors(2, 8), None)],
)
def test_the_initial_number_is_recorded_between_two_doublings(
    processors: Processors, initial: int | None
) -> None:
    assert processors.recorded_initial == initial


def test_six_of_four_processors_split_two() -> None:
    assert [Processors(4, 6).owner(each) for each in range(16)] == [0, 1, 2, 3, 4, 5, 2, 3] * 2
