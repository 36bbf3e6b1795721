from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.engine.scaling.ownership import ancestors, bucket, split_by

numbers = st.integers(0, 2**31 - 1)
initials = st.integers(1, 40)


@given(numbers, initials)
def test_initial_buckets_are_the_remainder(number: int, initial: int) -> None:
    assert bucket(number, initial, initial) == number % initial


@given(numbers, initials, st.integers(0, 200))
def test_one_more_bucket_moves_numbers_of_one_bucket_and_only_to_the_new_one(
    number: int, initial: int, grown: int
) -> None:
    before = bucket(number, initial, initial + grown)
    after = bucket(number, initial, initial + grown + 1)
    new = initial + grown
    assert after in {before, new}
    if after == new:
        assert before == split_by(new, initial)


@given(numbers, initials, st.data())
def test_adding_partitions_moves_no_key_to_another_processor(
    number: int, initial: int, data: st.DataObject
) -> None:
    """KIP-287, goal 1: key → partition → processor depends only on the number of processors."""
    processors = data.draw(st.integers(initial, initial + 100))
    partitions = data.draw(st.integers(processors, processors + 200))
    partition = bucket(number, initial, partitions)
    assert bucket(partition, initial, processors) == bucket(number, initial, processors)


@given(initials, st.integers(0, 300))
def test_ancestors_of_a_bucket_end_at_an_initial_bucket(initial: int, grown: int) -> None:
    number = initial + grown
    line = list(ancestors(number, initial))
    assert line[0] == number
    assert line[-1] < initial
    assert all(parent < child for child, parent in pairwise(line))


def test_the_example_of_the_kip() -> None:
    """10 partitions and processors; partitions to 15, processors to 15, partitions to 18."""
    keys = range(10_000)
    with_ten = {key: bucket(bucket(key, 10, 15), 10, 10) for key in keys}
    assert with_ten == {key: bucket(key, 10, 10) for key in keys}
    with_fifteen = {key: bucket(bucket(key, 10, 15), 10, 15) for key in keys}
    assert {key for key in keys if with_fifteen[key] != with_ten[key]} == {
        key for key in keys if with_fifteen[key] >= 10
    }
    assert {key: bucket(bucket(key, 10, 18), 10, 15) for key in keys} == with_fifteen
