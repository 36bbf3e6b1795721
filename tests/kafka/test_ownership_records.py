"""Records in the ownership topic that Headwater has not written are kept apart, never an exception."""

import json
from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from headwater.kafka import ownership
from headwater.kafka.bounded_records import ReadRecord
from headwater.kafka.ownership import LatestRecords, decode_record, encode_record, key_of
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.untrusted import LARGEST_VALUE, MOST_UNREAD, UnreadReason, UnreadRecord

_RECORD = OwnershipRecord(
    application_id="orders",
    stack=StackIdentity("0d6a", "organization/headwater/production"),
    topics={"orders-counts-changelog": "an id"},
)
_KEY = key_of(*_RECORD.key)
_FIELDS: dict[str, Any] = json.loads(encode_record(_RECORD))

_WRONG: dict[str, list[Any]] = {
    "format": [0, -1, True, "1", 1.0, None],
    "application": [3, None, ["orders"], "x" * 2_000, "a\nb"],
    "stack": [[], "0d6a", {"id": 1, "name": 2}, {"id": "0d6a"}],
    "topics": [[], 3, {"t": 3}, {"t" * 2_000: "id"}, {"t\x1b[2J": "id"}],
    "finished": [1, "true", None],
    "retired": [0, "", []],
    "reads": ["text", {"a": 1}, [1], [["a"]]],
    "retiredTopics": ["text", 1, [None]],
}


def read(records: Iterable[ReadRecord | UnreadRecord]) -> LatestRecords:
    latest = LatestRecords()
    for record in records:
        latest.add(record)
    return latest


def test_a_written_record_is_read() -> None:
    full = attrs.evolve(_RECORD, reads=frozenset({"a"}), retired_topics=frozenset({"b"}), is_retired=True)
    assert decode_record(encode_record(_RECORD)) == _RECORD
    assert decode_record(encode_record(full)) == full
    assert read([ReadRecord(7, _KEY, encode_record(_RECORD))]).log().records == (_RECORD,)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"[" * 100_000, id="deeply nested"),
        pytest.param(b'{"a":' * 100_000, id="deeply nested objects"),
        pytest.param(b"1" * 5_000, id="long number"),
        *(b"", b"null", b"[]", b"{}", b"\xff\xfe", b'{"application": "orders"}', b'"text"'),
        *(
            pytest.param(json.dumps({**_FIELDS, key: wrong}).encode(), id=f"{key} {wrong!r:.20}")
            for key, wrongs in _WRONG.items()
            for wrong in wrongs
        ),
    ],
)
def test_another_value_is_kept_apart_with_its_offset(value: bytes) -> None:
    log = read([ReadRecord(7, _KEY, value), ReadRecord(8, b"1f2e/orders", encode_record(_other()))]).log()
    assert log.records == (_other(),)
    [unread] = log.unread
    assert (unread.offset, unread.reason, unread.key) == (7, UnreadReason.NOT_OURS, ("0d6a", "orders"))


def _other() -> OwnershipRecord:
    return attrs.evolve(_RECORD, stack=StackIdentity("1f2e", "staging"))


def test_a_record_of_a_later_format_is_recognized() -> None:
    value = json.dumps({"format": 2, "anything": "else"}).encode()
    [unread] = read([ReadRecord(7, _KEY, value)]).log().unread
    assert (unread.reason, unread.key) == (UnreadReason.LATER_FORMAT, ("0d6a", "orders"))


def test_a_record_below_the_key_of_another_stack_is_not_used() -> None:
    log = read([ReadRecord(7, b"1f2e/orders", encode_record(_RECORD))]).log()
    assert log.records == ()
    assert [each.reason for each in log.unread] == [UnreadReason.OTHER_KEY]


@pytest.mark.parametrize(
    "nameless",
    [attrs.evolve(_RECORD, stack=StackIdentity("", "a/b/c")), attrs.evolve(_RECORD, application_id="")],
    ids=["no stack", "no application"],
)
def test_a_record_that_names_no_stack_or_no_application_is_not_used(nameless: OwnershipRecord) -> None:
    log = read([ReadRecord(7, key_of(*nameless.key), encode_record(nameless))]).log()
    assert log.records == ()
    assert [(each.reason, each.key) for each in log.unread] == [(UnreadReason.OTHER_KEY, None)]


def test_a_value_is_not_parsed_beyond_the_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", lambda _: pytest.fail("parsed"))
    [unread] = read([ReadRecord(7, _KEY, b" " * (LARGEST_VALUE + 1))]).log().unread
    assert unread.reason is UnreadReason.TOO_LARGE


def test_a_later_record_or_a_tombstone_of_the_key_ends_it() -> None:
    bad = ReadRecord(7, _KEY, b"{")
    assert read([bad, ReadRecord(8, _KEY, encode_record(_RECORD))]).log().unread == ()
    assert read([bad, ReadRecord(8, _KEY, None)]).log().unread == ()
    assert read([ReadRecord(6, _KEY, encode_record(_RECORD)), bad]).log().records == ()


@pytest.mark.parametrize("key", [b"", b"orders", b"/orders", b"0d6a/", b"\xff/\xfe", b"a/b" * 2_000])
def test_a_key_that_names_no_stack_is_kept_apart(key: bytes) -> None:
    [unread] = read([ReadRecord(7, key, b"{")]).log().unread
    assert unread.key is None


def test_many_unreadable_records_are_counted() -> None:
    log = read(ReadRecord(number, b"%d" % number, b"{") for number in range(MOST_UNREAD + 5)).log()
    assert [each.offset for each in log.unread] == list(range(MOST_UNREAD))
    assert log.more_unread == 5


@pytest.mark.parametrize("limit", ["MOST_KEYS", "MOST_BYTES"])
def test_more_records_than_fit_into_memory_are_one_problem(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(ownership, limit, 3 if limit == "MOST_KEYS" else 3 * len(encode_record(_RECORD)))
    same = (ReadRecord(number, _KEY, encode_record(_RECORD)) for number in range(100))
    assert read(same).log().records == (_RECORD,)
    others = (attrs.evolve(_RECORD, stack=StackIdentity(str(each), "s")) for each in range(10))
    with pytest.raises(ProblemsError) as raised:
        read(ReadRecord(100 + n, key_of(*each.key), encode_record(each)) for n, each in enumerate(others))
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.UNREADABLE_RECORD
    assert "offset 10" in str(problem.found)
