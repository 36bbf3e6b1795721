"""What the runtime decides without Spark and Kafka: markers, resets, restarts, rows."""

import base64
import struct

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.driver.reset import Reset, ResetKind
from spark_jobs.runtime.worker.offset_metadata import LARGEST, Marker, decode, newest
from spark_jobs.runtime.worker.rows import by_task
from spark_jobs.runtime.worker.task_input import COLUMNS

NAMES = st.text(max_size=40).filter(lambda name: not name.startswith("headwater."))
CLOCKS = st.dictionaries(NAMES, st.integers(-(2**63), 2**63 - 1), max_size=20)


@given(version=st.integers(0, 2**62), clocks=CLOCKS, time=st.integers(-1, 2**62))
def test_a_marker_comes_back_as_it_was(version: int, clocks: dict[str, int], time: int) -> None:
    assert decode(Marker(version, clocks).encode(time)) == Marker(version, clocks)


def test_a_marker_reads_as_kafka_streams_own_metadata() -> None:
    raw = base64.b64decode(Marker(3, {"task": 17}).encode(1_700_000_000_000))
    assert struct.unpack_from(">bqi", raw) == (2, 1_700_000_000_000, 2)
    assert raw[13:17] == struct.pack(">i", 4)
    assert raw[17:21] == b"task"
    assert raw[21:29] == struct.pack(">q", 17)


def test_many_clocks_are_deflated_to_fit() -> None:
    clocks = {f"KSTREAM-AGGREGATE-{number:010}": 1_700_000_000_000 + number for number in range(200)}
    text = Marker(1, clocks).encode(0)
    assert len(text) <= LARGEST
    assert decode(text) == Marker(1, clocks)


@pytest.mark.parametrize(
    "text", ["", "nonsense", "AgAAAAAAAAAA", base64.b64encode(b"\x01" + bytes(8)).decode()]
)
def test_what_others_commit_is_no_marker(text: str) -> None:
    assert decode(text) is None


def test_the_last_batch_of_a_task_counts() -> None:
    texts = [Marker(version).encode(0) for version in (3, 12, 7)]
    assert newest(["", *texts]) == Marker(12)
    assert newest([""]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Reset(ResetKind.EARLIEST)),
        ("LATEST", Reset(ResetKind.LATEST)),
        ("none", Reset(ResetKind.NONE)),
        ("by_duration:PT1H", Reset(ResetKind.BY_DURATION, 3_600_000)),
        ("by_duration:P1DT1M0.5S", Reset(ResetKind.BY_DURATION, 86_460_500)),
    ],
)
def test_reset_policies(text: str, expected: Reset) -> None:
    assert Reset.of(text) == expected


@pytest.mark.parametrize("text", ["first", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_what_is_no_reset_policy(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Reset.of(text)


def batch(*rows: tuple[object, ...]) -> pa.RecordBatch:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(column), kind)
            for column, kind in zip(columns, (*kinds, pa.list_(header)), strict=True)
        ],
        names=list(COLUMNS),
    )


def test_rows_become_records() -> None:
    rows = batch(
        ("in", 1, 5, 99, b"k", None, [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]),
        ("in", 1, 6, 98, None, b"v", None),
        ("in", 1, 7, 97, b"k", b"v", []),
    )
    (partition, task), *more = by_task([rows], shuffled=False).items()
    assert not more
    assert partition == 1
    assert task.input.records() == [
        ("in", 1, 5, 99, b"k", None, (("h", b"x"), ("h", None))),
        ("in", 1, 6, 98, None, b"v", ()),
        ("in", 1, 7, 97, b"k", b"v", ()),
    ]


def test_shuffled_rows_are_put_in_order_and_ticks_go_to_their_tasks() -> None:
    rows = batch(
        ("b", 0, 1, 1, b"k", b"v", []),
        ("a", 0, 2, 1, b"k", b"v", []),
        (None, 2, None, None, None, None, None),
        ("a", 0, 1, 1, b"k", b"v", None),
    )
    tasks = by_task([rows], shuffled=True)
    assert [record[:3] for record in tasks[0].input.records()] == [("a", 0, 1), ("a", 0, 2), ("b", 0, 1)]
    assert {record[6] for record in tasks[0].input.records()} == {()}
    assert not tasks[0].tick
    assert tasks[2].tick
    assert tasks[2].input.records() == []
