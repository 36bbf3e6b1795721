"""Which partitions had the keys of an input partition before, and what is committed for it afterwards."""

import pytest

from headwater.model.offset_metadata import OffsetMetadata, decode_metadata, decode_time
from headwater.model.problems import ProblemCode
from headwater_spark.driver.processor_move.moves import Committed, MovedPart
from headwater_spark.driver.reshard.input_changes import InputChange


def change(before: int, after: int) -> InputChange:
    return InputChange("orders", before, after, before, MovedPart("0", {"orders": after}, ()))


def committed(*times: int) -> dict[int, Committed]:
    """Return what tasks have committed that have read records with these largest timestamps."""
    return {
        partition: Committed(5, OffsetMetadata(3, {}).encode(time)) for partition, time in enumerate(times)
    }


@pytest.mark.parametrize(
    ("before", "after", "partition", "sources"),
    [(2, 4, 0, [0]), (2, 4, 3, [1]), (2, 3, 2, [0, 1]), (4, 6, 5, [1, 3])],
)
def test_keys_of_a_partition_were_in_those_with_the_same_remainder(
    before: int, after: int, partition: int, sources: list[int]
) -> None:
    assert sorted(change(before, after).sources(partition)) == sources


def test_a_partition_gets_the_latest_time_of_the_tasks_that_had_its_keys() -> None:
    known = committed(100, 200)
    assert decode_time(change(2, 4).text(2, known)) == 100
    assert decode_time(change(2, 4).text(3, known)) == 200
    assert decode_time(change(2, 3).text(2, known)) == 200


def test_the_version_of_the_state_grows_so_that_no_prepared_batch_is_applied() -> None:
    metadata = decode_metadata(change(2, 4).text(0, committed(100, 200)))
    assert metadata is not None
    assert metadata.version > 3 + 1


def test_records_that_are_held_back_prevent_the_change() -> None:
    held = {0: Committed(5, OffsetMetadata(3, {}).encode(1, {"writer": 7})), 1: Committed()}
    problem = change(2, 4).problem("app", held)
    assert problem is not None
    assert problem.code is ProblemCode.UNPROCESSED_RECORDS
    assert change(2, 4).problem("app", committed(100, 200)) is None
