"""The metadata that is committed with offsets."""

import base64
import struct
import tracemalloc
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.offset_metadata import (
    MAX_METADATA_BYTES,
    RESHARD_KEY,
    MoveMark,
    MovePhase,
    OffsetMetadata,
    decode_count,
    decode_mark,
    decode_metadata,
    decode_number,
    decode_positions,
    decode_processor,
    decode_processor_metadata,
    decode_time,
    encode_processor_metadata,
    latest_metadata,
    shows_processors,
    trim_text,
    unread_reason,
)
from headwater.model.untrusted import UnreadReason

NAMES = st.text(max_size=40).filter(lambda name: not name.startswith("headwater."))
CLOCKS = st.dictionaries(NAMES, st.integers(-(2**63), 2**63 - 1), max_size=20)


@given(version=st.integers(0, 2**62), clocks=CLOCKS, time=st.integers(-1, 2**62))
def test_metadata_is_decoded_as_it_was_encoded(version: int, clocks: dict[str, int], time: int) -> None:
    assert decode_metadata(OffsetMetadata(version, clocks).encode(time)) == OffsetMetadata(version, clocks)


def test_layout_is_that_of_kafka_streams() -> None:
    raw = base64.b64decode(OffsetMetadata(3, {"task": 17}).encode(1_700_000_000_000))
    assert struct.unpack_from(">bqi", raw) == (2, 1_700_000_000_000, 2)
    assert raw[13:17] == struct.pack(">i", 4)
    assert raw[17:21] == b"task"
    assert raw[21:29] == struct.pack(">q", 17)


def test_many_clocks_are_compressed_to_fit() -> None:
    clocks = {f"KSTREAM-AGGREGATE-{number:010}": 1_700_000_000_000 + number for number in range(200)}
    text = OffsetMetadata(1, clocks).encode(0)
    assert len(text) <= MAX_METADATA_BYTES
    assert decode_metadata(text) == OffsetMetadata(1, clocks)


@pytest.mark.parametrize(("length", "layout"), [(3018, 2), (3019, 3)])
def test_only_metadata_that_does_not_fit_is_compressed(length: int, layout: int) -> None:
    metadata = OffsetMetadata(1, {"x" * length: 17})
    text = metadata.encode(0)
    assert base64.b64decode(text)[0] == layout
    assert (len(text) == MAX_METADATA_BYTES) is (layout == 2)
    assert decode_metadata(text) == metadata


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "AgAAAAAAAAAA",
        base64.b64encode(b"\x01" + bytes(8)).decode(),
        f"!{OffsetMetadata(1).encode(0)}",
        base64.b64encode(struct.pack(">bqiiiq", 2, 0, 2**31 - 1, -8, -12, 0)).decode(),
    ],
)
@pytest.mark.timeout(120)
def test_metadata_of_other_programs_is_ignored(text: str) -> None:
    assert decode_metadata(text) is None


def text_of(entries: dict[str, int], layout: int = 2) -> str:
    """Return a text with any entries, as another program could commit it."""
    pairs = b"".join(
        struct.pack(">i", len(name)) + name.encode() + struct.pack(">q", number)
        for name, number in entries.items()
    )
    body = struct.pack(">i", len(entries)) + pairs
    return base64.b64encode(
        struct.pack(">bq", layout, 0) + (zlib.compress(body) if layout == 3 else body)
    ).decode()


@pytest.mark.parametrize("layout", [2, 3])
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("headwater.version", -1),
        ("headwater.processor", -1),
        ("headwater.processor", 2**40),
        ("headwater.initial", 0),
        ("headwater.count", 2**62),
        ("headwater.count", -5),
        ("headwater.processors", 0),
        ("headwater.move.from", 0),
        ("headwater.move.copy", 2**31),
        ("headwater.move.clear", -1),
        ("headwater.read.0", -1),
    ],
)
def test_numbers_out_of_their_ranges_are_not_used(name: str, number: int, layout: int) -> None:
    valid = {"headwater.version": 3, "headwater.processor": 2, "headwater.count": 4}
    text = text_of(valid | {name: number}, layout)
    assert unread_reason(text) is UnreadReason.NOT_OURS
    assert decode_metadata(text) is None
    assert decode_mark(text) is None
    assert decode_processor(text, 6) is None
    assert decode_count([text]) is None
    assert decode_positions(text) == {}
    assert unread_reason(text_of(valid, layout)) is None
    assert decode_count([text_of(valid, layout)]) == 4


def test_a_small_text_that_is_large_when_decompressed_is_not_read() -> None:
    bomb = struct.pack(">bq", 3, 0) + zlib.compress(bytes(200_000_000), 9)
    text = base64.b64encode(bomb).decode()
    assert len(text) < 300_000
    tracemalloc.start()
    try:
        assert decode_metadata(text) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert unread_reason(text) in (UnreadReason.NOT_OURS, UnreadReason.TOO_LARGE)
    assert unread_reason("A" * 10_000_000) is UnreadReason.TOO_LARGE


@pytest.mark.parametrize("layout", [4, 5, 127])
def test_a_text_of_a_later_version_is_recognized(layout: int) -> None:
    assert unread_reason(text_of({"headwater.version": 3}, layout)) is UnreadReason.LATER_FORMAT


@pytest.mark.parametrize("text", ["", "nonsense", "AgAAAAAAAAAA", OffsetMetadata(3, {"task": -5}).encode(0)])
def test_texts_of_other_programs_and_of_this_one_can_be_replaced(text: str) -> None:
    assert unread_reason(text) is None


@given(st.text() | st.binary().map(lambda raw: base64.b64encode(raw).decode()))
def test_no_text_raises_an_exception(text: str) -> None:
    decode_metadata(text)
    unread_reason(text)
    decode_time(text)


def test_latest_metadata_is_that_of_the_last_batch() -> None:
    texts = [OffsetMetadata(version).encode(0) for version in (3, 12, 7)]
    assert latest_metadata(["", *texts]) == OffsetMetadata(12)
    assert latest_metadata([""]) is None


@pytest.mark.parametrize("phase", MovePhase)
def test_marks_are_no_clocks(phase: MovePhase) -> None:
    mark = MoveMark(phase, 4, 8)
    text = OffsetMetadata(3, {"task": 17}).encode(9, {"0": 5}, 2, mark)
    assert decode_mark(text) == mark
    assert decode_metadata(text) == OffsetMetadata(3, {"task": 17})
    assert decode_positions(text) == {"0": 5}
    assert decode_processor(text, 6) == 2
    assert decode_time(text) == 9


def test_most_texts_have_no_mark() -> None:
    assert decode_mark(OffsetMetadata(3, {"task": 17}).encode(9, {"0": 5}, 2)) is None
    assert decode_mark("") is None


def test_the_time_of_a_partition_is_that_of_kafka_streams_too() -> None:
    text = base64.b64encode(b"\x02" + (1_700_000_000_000).to_bytes(8, "big") + bytes(4)).decode()
    assert decode_time(text) == 1_700_000_000_000
    assert decode_time("") == decode_time("nonsense") == -1


@given(st.integers(-1, 2**62), CLOCKS, st.text(max_size=20))
def test_what_follows_a_text_is_removed(time: int, times: Mapping[str, int], rest: str) -> None:
    """librdkafka copies texts without a null byte at their end."""
    first, without_entries = (
        base64.b64encode(struct.pack(">bq", format_, time)).decode() for format_ in (1, 2)
    )
    longest = OffsetMetadata(3, {f"{number:0100}": number * 7**20 for number in range(60)}).encode(time)
    assert unread_reason(longest) is None
    for text in (
        first,
        without_entries,
        encode_processor_metadata(time, times),
        OffsetMetadata(3, times).encode(time),
        longest,
    ):
        assert trim_text(text) == text
        assert trim_text(text + rest.lstrip("=")) == text


def test_the_metadata_of_kafka_streams_are_read_and_written() -> None:
    assert encode_processor_metadata(1_785_800_000_000, {}) == "AgAAAZ/J+YIA"
    text = encode_processor_metadata(1_700_000_000_000, {"closed": 5})
    assert decode_time(text) == 1_700_000_000_000
    assert decode_processor_metadata(text) == {"closed": 5}
    assert decode_metadata(text) is None


PLAIN, OF_FOUR = OffsetMetadata(3).encode(0), OffsetMetadata(3).encode(0, declared=4)
OF_EIGHT, OWNED = OffsetMetadata(3).encode(0, declared=8), OffsetMetadata(3).encode(0, processor=1)
COPYING = MoveMark(MovePhase.COPY, 4, 8)
RESHARD = OffsetMetadata(0, {f"{RESHARD_KEY}phase": 0}).encode(-1, mark=COPYING)


@pytest.mark.parametrize(
    ("texts", "partitions", "number"),
    [
        ([], 8, None),
        ([PLAIN], 8, None),
        ([OF_FOUR], 4, None),
        ([OF_FOUR], 8, 4),
        (["", OF_FOUR, OF_FOUR], 8, 4),
        ([OF_FOUR, PLAIN], 8, None),
        ([OF_FOUR, OF_EIGHT], 16, None),
        ([OF_EIGHT, OffsetMetadata(3).encode(0, count=4, declared=4)], 8, 4),
        ([OF_FOUR, OffsetMetadata(3).encode(0, mark=COPYING, declared=4)], 8, 4),
        ([OffsetMetadata(3).encode(0, mark=MoveMark(MovePhase.CLEAR, 4, 8), declared=8)], 8, 8),
    ],
)
def test_the_number_that_changelog_topics_do_not_show(
    texts: list[str], partitions: int, number: int | None
) -> None:
    assert decode_number(texts, partitions) == number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("any text", False),
        (PLAIN, False),
        (encode_processor_metadata(5, {"punctuation": 7}), False),
        (RESHARD, False),
        (OF_FOUR, True),
        (OWNED, True),
        (OffsetMetadata(3).encode(0, initial=4), True),
        (OffsetMetadata(3).encode(0, count=4), True),
        (OffsetMetadata().encode(-1, mark=MoveMark(MovePhase.CATCH_UP, 4, 8)), True),
    ],
)
def test_a_text_shows_whether_its_application_has_processors(
    text: str,
    expected: bool,  # noqa: FBT001 - a case of the table
) -> None:
    assert shows_processors(["", text]) is expected
    metadata = decode_metadata(text)
    assert metadata is None or "headwater.processors" not in metadata.clocks
