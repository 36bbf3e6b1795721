"""All records reach the producer in order, as tuples and as columns, also when its queue is full at times."""

from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.columns import OutputColumns, TopicColumns
from headwater_spark.engine.records import Headers
from headwater_spark.worker.record_sender import RecordSender
from headwater_spark.worker.refusals import RecordsRefusedError

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
    """A producer whose queue is full at the calls in `full`; `refused` is a value that it refuses."""

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
