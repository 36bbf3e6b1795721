"""Linear hashing: which bucket a number has, and which numbers move to an added bucket."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.linear_hashing import (
    bucket_of,
    bucket_table,
    earlier_buckets,
    is_doubled,
    round_start,
    split_by,
)

numbers = st.integers(0, 2**31 - 1)
initials = st.integers(1, 40)


@given(numbers, initials)
def test_initial_buckets_are_the_remainder(number: int, initial: int) -> None:
    assert bucket_of(number, initial, initial) == number % initial


@given(numbers, initials, st.integers(0, 200))
def test_one_more_bucket_moves_numbers_of_one_bucket_and_only_to_the_new_one(
    number: int, initial: int, grown: int
) -> None:
    before = bucket_of(number, initial, initial + grown)
    after = bucket_of(number, initial, initial + grown + 1)
    new = initial + grown
    assert after in {before, new}
    if after == new:
        assert before == split_by(new, initial)


@given(numbers, initials, st.integers(0, 200))
def test_a_table_has_the_bucket_of_each_number(number: int, initial: int, grown: int) -> None:
    table = bucket_table(initial, initial + grown)
    assert table[number % len(table)] == bucket_of(number, initial, initial + grown)


@pytest.mark.parametrize(("initial", "count"), [(0, 1), (-1, 1), (3, 2)])
def test_there_is_no_table_with_fewer_than_the_initial_buckets(initial: int, count: int) -> None:
    with pytest.raises(ValueError, match="cannot have"):
        bucket_table(initial, count)


@given(numbers, initials, st.data())
def test_adding_partitions_moves_no_key_to_another_processor(
    number: int, initial: int, data: st.DataObject
) -> None:
    """KIP-287, goal 1: key → partition → processor depends only on the number of processors."""
    processors = data.draw(st.integers(initial, initial + 100))
    partitions = data.draw(st.integers(processors, processors + 200))
    partition = bucket_of(number, initial, partitions)
    assert bucket_of(partition, initial, processors) == bucket_of(number, initial, processors)


@given(initials, st.integers(0, 300))
def test_ancestors_of_a_bucket_end_at_an_initial_bucket(initial: int, grown: int) -> None:
    number = initial + grown
    line = list(earlier_buckets(number, initial))
    assert line[0] == number
    assert line[-1] < initial
    assert all(parent < child for child, parent in pairwise(line))


def test_the_example_of_the_kip() -> None:
    """10 partitions and processors; partitions to 15, processors to 15, partitions to 18."""
    keys = range(10_000)
    with_ten = {key: bucket_of(bucket_of(key, 10, 15), 10, 10) for key in keys}
    assert with_ten == {key: bucket_of(key, 10, 10) for key in keys}
    with_fifteen = {key: bucket_of(bucket_of(key, 10, 15), 10, 15) for key in keys}
    assert {key for key in keys if with_fifteen[key] != with_ten[key]} == {
        key for key in keys if with_fifteen[key] >= 10
    }
    assert {key: bucket_of(bucket_of(key, 10, 18), 10, 15) for key in keys} == with_fifteen


def partition_by_default(number: int, partitions: int) -> int:
    """Kafka's default partitioner: the hash of the key modulo the number of partitions."""
    return number % partitions


@given(numbers, initials, st.integers(0, 8), st.data())
def test_the_default_partitioner_keeps_each_key_with_its_processor_if_partitions_double(
    number: int, initial: int, doublings: int, data: st.DataObject
) -> None:
    partitions = initial * 2**doublings
    processors = data.draw(st.integers(initial, partitions))
    partition = partition_by_default(number, partitions)
    assert bucket_of(partition, initial, processors) == bucket_of(number, initial, processors)


@given(initials.filter(lambda initial: initial > 1), st.integers(1, 300))
def test_the_default_partitioner_moves_keys_at_a_count_that_is_no_multiple(initial: int, added: int) -> None:
    partitions = initial + added
    moved = {
        key
        for key in range(partitions * initial)
        if partition_by_default(key, partitions) % initial != key % initial
    }
    assert bool(moved) == (partitions % initial != 0)


@given(initials, st.integers(0, 300))
def test_a_count_is_doubled_if_it_is_the_initial_one_times_a_power_of_two(initial: int, added: int) -> None:
    count = initial + added
    powers = {initial * 2**k for k in range(10)}
    assert is_doubled(count, initial) == (count in powers)


def test_fewer_than_the_initial_count_is_not_doubled() -> None:
    assert not is_doubled(2, 4)


@given(numbers, initials, st.integers(0, 8), st.data())
def test_the_initial_number_follows_from_a_doubled_partition_count(
    number: int, initial: int, doublings: int, data: st.DataObject
) -> None:
    """Nothing else has to be known to find the processor of a partition."""
    partitions = initial * 2**doublings
    processors = data.draw(st.integers(initial, partitions))
    found = round_start(partitions, processors)
    assert found is not None
    assert found <= processors < 2 * found
    assert bucket_of(number, found, processors) == bucket_of(number, initial, processors)
    assert round_start(initial, processors) == found


@given(initials, st.integers(0, 5), st.integers(0, 200), st.integers(0, 200))
def test_the_initial_number_is_the_same_whatever_the_number_was_meanwhile(
    initial: int, doublings: int, before: int, added: int
) -> None:
    """Offsets that were committed with fewer or more processors show it, too."""
    known = round_start(initial * 2**doublings, initial + before)
    assert known is not None
    assert round_start(known, initial + added) == round_start(initial, initial + added)


def test_counts_that_no_number_was_doubled_to_have_no_round() -> None:
    assert [round_start(14, count) for count in (2, 3, 6, 7, 13)] == [None, None, None, 7, 7]
    assert round_start(4, 3) == 2
    assert round_start(12, 4) == round_start(6, 4) == 3
