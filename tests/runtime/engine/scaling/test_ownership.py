import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.engine.scaling.ownership import Ownership


def test_one_processor_owns_everything() -> None:
    assert Ownership().owner("orders", 17, 4) == 0


def test_an_added_processor_owns_records_from_the_cut_on() -> None:
    grown = Ownership(initial=2).with_processor(3, {("orders", 2): 100})
    assert [grown.owner("orders", 2, offset) for offset in (99, 100)] == [0, 2]
    assert [grown.owner("orders", partition, 500) for partition in (0, 1)] == [0, 1]


def test_the_owner_of_an_added_partition_owns_all_its_records() -> None:
    grown = Ownership(initial=2).with_processor(3, {("orders", 2): 100})
    assert grown.owner("orders", 6, 0) == 2


def test_partitions_are_expanded_before_processors() -> None:
    with pytest.raises(ValueError, match="expand the input topics first"):
        Ownership(initial=3).moving(3)


@pytest.mark.parametrize(
    ("cuts", "message"),
    [({}, r"no cut for \[2\]"), ({("orders", 0): 1, ("orders", 2): 1}, r"partitions \[0\] do not move")],
)
def test_cuts_are_of_the_moving_partitions(cuts: dict[tuple[str, int], int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ownership(initial=2).with_processor(3, cuts)


@given(
    initial=st.integers(1, 6), steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=6)
)
def test_the_owner_of_a_record_never_changes(initial: int, steps: list[tuple[int, int]]) -> None:
    """Records below the cuts keep their owner; the new processor owns the others."""
    partitions, ownership = initial, Ownership(initial)
    for more, cut in steps:
        partitions = max(partitions + more, ownership.processors + 1)
        moving = ownership.moving(partitions)
        grown = ownership.with_processor(partitions, {("t", each): cut for each in moving})
        for partition in range(partitions):
            for offset in (0, cut - 1, cut, cut + 1):
                if offset < 0:
                    continue
                before, after = ownership.owner("t", partition, offset), grown.owner("t", partition, offset)
                moves = partition in moving and offset >= cut
                assert after == (ownership.processors if moves else before)
        ownership = grown
