"""Which records a refusal of the brokers covers, and how often a batch is attempted."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from headwater_spark.engine.records import OutputRecord
from headwater_spark.worker.refusals import RecordsRefusedError, Refusal, RefusedRecords

_NOW = 1_700_000_000_000
_DAY = 86_400_000
_TIME, _SIZE, _INVALID = (
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_RECORD,
)


def record(time: int = _NOW, value: bytes = b"v", topic: str = "out") -> OutputRecord:
    return (topic, 0, b"k", value, time, ())


def refused(code: int, of: OutputRecord) -> RecordsRefusedError:
    refusal = Refusal(code=code, text="refused", record=of, now_ms=_NOW)
    return RecordsRefusedError(KafkaError(code, "refused"), [refusal])


@pytest.mark.parametrize(
    ("code", "of", "covered", "not_covered"),
    [
        (_TIME, record(_NOW + _DAY), [record(_NOW + _DAY), record(_NOW + 9 * _DAY)], [record(_NOW + 9)]),
        (_TIME, record(_NOW - _DAY), [record(_NOW - _DAY), record(5), record(0)], [record(_NOW - 9)]),
        (
            _SIZE,
            record(value=b"four"),
            [record(value=b"same"), record(value=b"five5")],
            [record(value=b"one")],
        ),
        (_INVALID, record(value=b"bad"), [record(value=b"bad")], [record(value=b"badly"), record(_NOW + 1)]),
    ],
)
def test_a_refusal_covers_what_is_refused_for_the_same_reason(
    code: int, of: OutputRecord, covered: list[OutputRecord], not_covered: list[OutputRecord]
) -> None:
    found = RefusedRecords()
    assert not found
    found.add(refused(code, of))
    assert found
    assert all(found.reason(each) for each in covered)
    assert not any(found.reason(each) for each in not_covered)
    assert found.reason(("other", *covered[0][1:])) is None
    found.clear()
    assert not found
    assert found.reason(covered[0]) is None


@pytest.fixture
def another_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("another_time_zone")
def test_the_reason_shows_the_timestamp() -> None:
    refusal = Refusal(code=_INVALID, text="INVALID_RECORD", record=record(7_258_118_400_000), now_ms=_NOW)
    assert refusal.reason == "INVALID_RECORD (timestamp 2200-01-01T00:00:00Z)"
    far = Refusal(code=_INVALID, text="INVALID_RECORD", record=record(2**63 - 1), now_ms=_NOW)
    assert "9223372036854775807 ms" in far.reason


def test_headers_count_for_the_size() -> None:
    found = RefusedRecords()
    found.add(refused(_SIZE, ("out", 0, None, b"v", _NOW, (("name", b"long text"),))))
    assert found.reason(record(value=b"v and more")) is None
    assert found.reason(record(value=b"longer than all of it"))


def test_a_batch_is_not_attempted_for_ever() -> None:
    found, error = RefusedRecords(), refused(_INVALID, record())
    for _ in range(2):
        for _ in range(29):
            found.add(error)
        with pytest.raises(RecordsRefusedError) as raised:
            found.add(error)
        assert raised.value is error
        found.clear()


def test_the_error_is_that_of_kafka() -> None:
    error = KafkaError(_INVALID, "refused")
    assert RecordsRefusedError(error).args == (error,)
