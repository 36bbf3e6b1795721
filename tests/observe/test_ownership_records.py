"""Records in the ownership topic that Headwater has not written: skipped, never an exception."""

import json

import pytest

from headwater.kafka.ownership import decode, encode
from headwater.model.ownership import OwnershipRecord, StackIdentity

_RECORD = OwnershipRecord(
    application_id="orders",
    stack=StackIdentity("0d6a", "organization/headwater/production"),
    topics={"orders-counts-changelog": "an id"},
)


def test_a_written_record_is_read() -> None:
    assert decode(encode(_RECORD)) == _RECORD


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"[" * 100_000, id="deeply nested"),
        pytest.param(b'{"a":' * 100_000, id="deeply nested objects"),
        pytest.param(b"1" * 5_000, id="long number"),
        *(b"", b"null", b"[]", b"{}", b"\xff\xfe", b'{"application": "orders"}', b'"text"'),
        json.dumps({"application": "a", "stack": [], "topics": {}, "finished": 1, "retired": 0}).encode(),
        json.dumps({"application": "a", "stack": {"id": 1, "name": 2}, "topics": 3}).encode(),
    ],
)
def test_another_record_is_skipped(value: bytes) -> None:
    assert decode(value) is None
