"""All records reach the producer in order; which records a refusal of the brokers covers."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.columns import OutputColumns, TopicColumns
from headwater_spark.engine.records import Headers, OutputRecord
from headwater_spark.worker.record_sender import RecordSender, RecordsRefusedError, Refusal, RefusedRecords

_HEADERS: st.SearchStrategy[Headers] = st.sampled_from([(), (), (("trace", b"1"),)])
_RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=2), st.none() | st.binary(max_size=2), st.integers(0, 3), _HEADERS
    ),
    max_size=8,
)
_PARTS = st.lists(_RECORDS, max_size=3)


@attrs.define
class QueueProducer:
    """A producer whose queue is full at the calls in `full`; `refused` is a value that it refuses.

    No topic exists.
    """

    full: frozenset[int] = frozenset()
    refused: bytes | None = None
    calls: int = 0
    sent: list[tuple[object, ...]] = attrs.field(factory=list)

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *more: Any,  # noqa: ANN401 - the producer takes many optional arguments
    ) -> None:
        _, _, timestamp, *headers = more
        self.calls += 1
        if self.calls in self.full:
            raise BufferError("Local: Queue full")
        if self.refused is not None and value == self.refused:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self.sent.append((topic, partition, key, value, timestamp, tuple(*headers)))

    def poll(self, _: float) -> int:
        return 0

    def list_topics(self, topic: str, _: float) -> SimpleNamespace:
        missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=missing, partitions={})})


def _columns(parts: list[list[tuple[Any, ...]]]) -> OutputColumns:
    columns: Any = [tuple(zip(*part, strict=True)) for part in parts if part]
    return OutputColumns([TopicColumns("out", columns)])


def _sender(producer: QueueProducer) -> RecordSender:
    used: Any = producer
    return RecordSender(used, None)


@given(parts=_PARTS, full=st.frozensets(st.integers(1, 12), max_size=6))
def test_all_records_are_sent_in_order_while_the_queue_is_full_at_times(
    parts: list[list[tuple[Any, ...]]], full: frozenset[int]
) -> None:
    records = [record for part in parts for record in part]
    expected = [("out", -1, key, value, time or 1, headers) for key, value, time, headers in records]
    by_columns, by_record = QueueProducer(full), QueueProducer(full)
    assert _sender(by_columns).send(_columns(parts)) == len(records)
    assert _sender(by_record).send(list(_columns(parts))) == len(records)
    assert by_columns.sent == by_record.sent == expected


@pytest.mark.parametrize("headers", [(), (("headwater.task", b"1"),)])
@pytest.mark.parametrize("full", [frozenset[int](), frozenset({1, 3})])
def test_a_record_that_the_client_refuses_is_named(full: frozenset[int], headers: Headers) -> None:
    records = [(b"k", b"v%d" % number, 5, headers) for number in range(4)]
    for sent in (_columns([records]), list(_columns([records]))):
        producer = QueueProducer(full, refused=b"v2")
        with pytest.raises(RecordsRefusedError) as refused:
            _sender(producer).send(sent)
        assert [each.record for each in refused.value.refusals] == [("out", None, b"k", b"v2", 5, headers)]
        assert [record[3] for record in producer.sent] == [b"v0", b"v1"]


def test_a_topic_that_does_not_exist_is_named() -> None:
    with pytest.raises(KafkaException, match=r"UNKNOWN_TOPIC_OR_PART.*out: Broker: Unknown topic"):
        _sender(QueueProducer()).send([("out", 0, b"k", b"v", 5, ())])


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
