"""Hashes of many records are the same as of each alone, and differ if any part of a record does."""

from collections.abc import Callable, Mapping

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.driver.reshard.entry_totals import (
    EntryColumns,
    LastRecords,
    content_hashes,
    entry_columns,
)
from headwater_spark.engine.records import InputRecord
from tests.runtime.record_chunks import chunk_of

_CONTENTS = st.lists(st.binary(max_size=40) | st.integers(0, 300).map(bytes), max_size=30)
_TIME = 1_760_000_000_000
_RECORD: InputRecord = ("topic", 0, 7, 1_700_000_000_000, b"key", b"value", (("name", b"header"),))


@given(_CONTENTS)
def test_each_content_has_its_own_hash(contents: list[bytes]) -> None:
    found = content_hashes(contents)
    assert found.tolist() == [content_hashes([content])[0] for content in contents]
    assert len(set(found.tolist())) == len(set(contents))


def test_hashes_are_the_same_in_each_process() -> None:
    """Executions that continue a reshard compare them with those in the journal."""
    found = content_hashes([b"", b"customer 1", b"v" * 100, b"v" * 1000])
    assert found.tolist() == [
        1760245841805064774,
        9938189543605126207,
        12243316038223734229,
        2609950088861173850,
    ]


def _digest(record: InputRecord) -> int:
    [found] = entry_columns(chunk_of([record], 8)).digests().tolist()
    return int(found)


def test_each_part_of_a_record_changes_its_digest() -> None:
    topic, partition, offset, time, key, value, headers = _RECORD
    others: list[InputRecord] = [
        (topic, partition, offset, time + 1, key, value, headers),
        (topic, partition, offset, time, b"kez", value, headers),
        (topic, partition, offset, time, key, b"valuf", headers),
        (topic, partition, offset, time, key, b"value\0", headers),
        (topic, partition, offset, time, value, key, headers),
        (topic, partition, offset, time, key, value, ()),
        (topic, partition, offset, time, key, value, (("name", None),)),
        (topic, partition, offset, time, key, b"", headers),
    ]
    digests = {_digest(each) for each in (_RECORD, *others)}
    assert len(digests) == 1 + len(others)
    assert 0 not in digests
    assert _digest((topic, partition, offset, time, key, None, headers)) == 0
    assert _digest((topic, 1, 9, time, key, value, headers)) == _digest(_RECORD)


def test_records_without_a_key_are_no_entries() -> None:
    records: list[InputRecord] = [("t", 0, at, 5, key, b"v", ()) for at, key in enumerate([b"a", None, b"b"])]
    found = entry_columns(chunk_of(records, 3))
    assert found.keys == [b"a", b"b"]
    assert found.hashes.tolist() == content_hashes([b"a", b"b"]).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 3)), max_size=40), st.integers(1, 7))
def test_the_last_record_of_each_key_counts(records: list[tuple[int, int | None]], chunk: int) -> None:
    rows: list[InputRecord] = [
        ("t", 0, at, at, b"%d" % key, None if value is None else b"%d" % value, ())
        for at, (key, value) in enumerate(records)
    ]
    last = LastRecords()
    for at in range(0, len(rows), chunk):
        entries = entry_columns(chunk_of(rows[at : at + chunk], at + chunk))
        owners = np.array([int(key) % 2 for key in entries.keys], np.int64)
        last.add(entries, owners, entries.times < 0)
    live = {row[4]: row[5] for row in rows if row[4] is not None}
    expected = [key for key, value in live.items() if value is not None]
    totals = last.totals()
    for owner in range(2):
        own = [key for key in expected if int(key) % 2 == owner]
        count = totals[owner].count if owner in totals else 0
        assert count == len(own)
    assert sorted(last.leaving_keys(0).tolist()) == sorted(
        content_hashes([key for key in expected if int(key) % 2 == 1]).tolist()
    )


_NUMBER = 200_000
_STRUCTURED: Mapping[str, Callable[[int], bytes]] = {
    "date and sequence": lambda at: b"202611%02d%08d" % (1 + at % 28, at // 28),
    "prefix and sequence": lambda at: b"customer %09d" % at,
    "windowed": lambda at: b"key %03d" % (at % 500) + (_TIME + 60_000 * (at // 500)).to_bytes(8, "big"),
    "session": lambda at: b"key" + (_TIME + at).to_bytes(8, "big") + (_TIME + at // 2).to_bytes(8, "big"),
    "long common prefix": lambda at: b"p" * 300 + at.to_bytes(4, "big"),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("windowed", "long common prefix") else [pytest.mark.slow])
        for kind in _STRUCTURED
    ],
)
def test_structured_keys_have_different_hashes(kind: str) -> None:
    keys = [*map(_STRUCTURED[kind], range(_NUMBER))]
    assert len(set(keys)) == _NUMBER
    for is_other in (False, True):
        assert len(set(content_hashes(keys, is_other=is_other).tolist())) == _NUMBER
    found = EntryColumns(
        keys, keys, np.full(_NUMBER, _TIME), [()] * _NUMBER, content_hashes(keys), content_hashes(keys)
    )
    assert len(set(found.digests().tolist())) > _NUMBER - 3  # 63 bits


def test_two_keys_with_one_hash_are_two_entries() -> None:
    records: list[InputRecord] = [
        ("t", 0, at, 5, key, value, ())
        for at, (key, value) in enumerate(
            [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", None)]
        )
    ]
    entries = entry_columns(chunk_of(records, 9))
    same = attrs.evolve(entries, hashes=np.full(5, 7, np.uint64))
    last = LastRecords()
    last.add(same, np.zeros(5, np.int64), np.zeros(5, np.bool_))
    assert len(last) == 3
    assert last.totals()[0].entries == 2
    live = LastRecords()
    live.add(
        same.select_records(np.array([True, False, False, True, False])),
        np.zeros(2, np.int64),
        np.zeros(2, np.bool_),
    )
    assert not last.has_deleted(live)
    live.add(
        same.select_records(np.array([False, True, False, False, False])),
        np.zeros(1, np.int64),
        np.zeros(1, np.bool_),
    )
    assert last.has_deleted(live)
