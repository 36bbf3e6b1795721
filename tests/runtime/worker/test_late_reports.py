"""A refused record fails its transaction before it is reported: the failure waits for the report."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka import Connection
from headwater_spark.worker import clients
from headwater_spark.worker.record_sender import RecordsRefusedError
from headwater_spark.worker.transaction import TransactionalProducer

_REFUSED = KafkaError(KafkaError.INVALID_TIMESTAMP)


class Message:
    def topic(self) -> str:
        return "out"


@attrs.define
class LateProducer:
    """Its transaction has failed; `report` is called by the third `poll`, after other events."""

    report: Callable[[KafkaError, Message], None]
    error: KafkaError
    polls: int = 0

    def init_transactions(self, _: float) -> None:
        """Fence earlier producers."""

    def begin_transaction(self) -> None:
        """Begin."""

    def produce(self, *_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))

    def poll(self, seconds: float) -> int:
        if self.polls >= 3 or (self.polls and not seconds):
            return 0
        self.polls += 1
        if self.polls == 3:
            self.report(self.error, Message())
        return 1


@pytest.fixture
def open_producer(monkeypatch: pytest.MonkeyPatch) -> Callable[[KafkaError], TransactionalProducer]:
    def open_(error: KafkaError) -> TransactionalProducer:
        def producer(_: Connection, settings: Mapping[str, Any]) -> LateProducer:
            return LateProducer(settings["on_delivery"], error)

        monkeypatch.setattr(clients, "create_producer", producer)
        reader: Any = None
        return TransactionalProducer(Connection(bootstrap_servers=("unused:9092",)), "app-0-0", reader)

    return open_


def test_refusal_is_found_behind_other_events(
    open_producer: Callable[[KafkaError], TransactionalProducer],
) -> None:
    with pytest.raises(RecordsRefusedError):
        open_producer(_REFUSED).send([("out", None, b"k", b"v", 1, ())])


def test_other_failures_are_raised_as_they_are(
    open_producer: Callable[[KafkaError], TransactionalProducer],
) -> None:
    with pytest.raises(KafkaException) as raised:
        open_producer(KafkaError(KafkaError._FENCED)).send([("out", None, b"k", b"v", 1, ())])
    assert not isinstance(raised.value, RecordsRefusedError)
