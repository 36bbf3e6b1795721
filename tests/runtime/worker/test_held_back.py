"""What is committed for records that are held back."""

from headwater.model.offset_metadata import OffsetMetadata, decode_metadata, decode_positions
from headwater_spark.engine.records import InputRecord
from headwater_spark.worker.interleaving import (
    MAX_WRITERS,
    in_processing_order,
    processed_part,
    with_task_header,
    without_read,
    without_task_headers,
)

SHARED = frozenset({"shared"})
PARTITION = ("shared", 0)
ORDERS = ("orders", 0)


def shared(offset: int, task: int, time: int) -> InputRecord:
    ((*_, headers),) = with_task_header([("shared", 0, b"k", b"v", time, ())], SHARED, task)
    return ("shared", 0, offset, time, b"k", b"v", headers)


def order(offset: int, time: int) -> InputRecord:
    return ("orders", 0, offset, time, b"k", b"v", ())


def test_first_record_held_back_is_committed() -> None:
    part = processed_part([order(3, 10), order(4, 30), order(7, 20)], {ORDERS: 2}, SHARED, {})
    assert (part.read, part.offsets, part.times) == (1, {ORDERS: 4}, {ORDERS: 10})
    assert part.held_back == {ORDERS: 4}
    assert not part.positions


def test_partition_without_a_processed_record_is_not_committed() -> None:
    part = processed_part([order(3, 10)], {ORDERS: 1}, SHARED, {})
    assert (part.read, part.offsets, part.held_back) == (0, {}, {ORDERS: 3})


def test_records_of_several_writers_are_committed_by_writer() -> None:
    """Task 1 wrote after task 0; in the order of time, its first record is second."""
    records = [shared(0, 0, 10), shared(1, 0, 30), shared(2, 1, 20), shared(3, 1, 40)]
    ordered = in_processing_order(records, SHARED)
    assert [each[2] for each in ordered] == [0, 2, 1, 3]
    part = processed_part(ordered, {PARTITION: 2}, SHARED, {})
    assert part.offsets == {PARTITION: 1}
    assert part.positions == {PARTITION: {"0": 1, "1": 3}}
    assert [each[2] for each in without_read(records[1:], part.positions)] == [1, 3]


def test_a_partition_that_was_processed_as_a_whole_is_committed_to_its_end() -> None:
    """The largest offset may be that of an earlier record: several writers are merged by time."""
    records = [shared(6, 1, 10), shared(9, 0, 20), shared(8, 1, 30), order(4, 15), order(5, 40)]
    part = processed_part(records, {ORDERS: 1}, SHARED, {})
    assert part.offsets == {PARTITION: 10, ORDERS: 5}
    assert part.times == {PARTITION: 30, ORDERS: 15}
    assert (part.read, part.held_back, part.positions) == (4, {ORDERS: 5}, {})


def test_position_of_a_writer_without_new_records_is_kept() -> None:
    ordered = in_processing_order([shared(1, 0, 30), shared(2, 0, 50)], SHARED)
    part = processed_part(ordered, {PARTITION: 1}, SHARED, {PARTITION: {"1": 9}})
    assert part.positions == {PARTITION: {"0": 2, "1": 9}}
    replayed = processed_part(ordered, {PARTITION: 1}, SHARED, {PARTITION: {"0": 7}})
    assert replayed.positions == {PARTITION: {"0": 7}}


def test_only_records_before_the_position_of_their_writer_were_read() -> None:
    records = [shared(0, 0, 10), shared(1, 1, 10), shared(2, 1, 10), order(0, 10)]
    assert without_read(records, {}) == records
    assert without_read(records, {PARTITION: {"1": 2}}) == [records[0], *records[2:]]
    assert without_read(records, {("shared", 1): {"1": 9}}) == records


def test_task_processes_records_without_the_header() -> None:
    assert [each[-1] for each in without_task_headers([shared(0, 0, 10), order(0, 1)], SHARED)] == [(), ()]
    of_another_topic: InputRecord = ("orders", *shared(0, 0, 10)[1:])
    assert without_task_headers([of_another_topic], SHARED) == [of_another_topic]


def test_records_of_too_many_writers_stay_in_the_order_of_their_offsets() -> None:
    """Their positions would not fit into the metadata of an offset."""
    records = [shared(task, task, 1000 - task) for task in range(MAX_WRITERS + 1)]
    assert in_processing_order(records, SHARED) == records
    assert in_processing_order(records[1:], SHARED) == records[:0:-1]


def test_positions_of_many_writers_fit_into_the_metadata() -> None:
    positions = {str(task): 10**12 + 7919 * task**2 for task in range(MAX_WRITERS)}
    clocks = {f"KSTREAM-AGGREGATE-{number:010}": 1_700_000_000_000 + number for number in range(10)}
    text = OffsetMetadata(1, clocks).encode(0, positions)
    assert len(text) <= 4096
    assert decode_positions(text) == positions
    assert decode_metadata(text) == OffsetMetadata(1, clocks)
