"""Calls into the Kafka client library that never return, and requests that are repeated."""

from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater_spark.worker.clients import call_with_timeout, retry_transient


def test_call_that_returns_is_made_once() -> None:
    calls: list[int] = []
    call_with_timeout(60, "commit", lambda: calls.append(1))
    assert calls == [1]


def test_exception_of_the_call_is_raised() -> None:
    def call() -> None:
        raise LookupError("fenced")

    with pytest.raises(LookupError, match="fenced"):
        call_with_timeout(60, "commit", call)


def test_call_that_does_not_return_times_out() -> None:
    never = Event()

    def call() -> None:
        never.wait()

    with pytest.raises(KafkaException, match=r"commit: no answer within 0\.05 s"):
        call_with_timeout(0.05, "commit", call)
    never.set()


@pytest.mark.parametrize(
    "code",
    [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH],
)
def test_request_is_repeated_while_a_leader_is_elected(code: int) -> None:
    """`org.apache.kafka.common.errors.RetriableException`."""
    answers: list[KafkaException | int] = [KafkaException(KafkaError(code)), 7]

    @retry_transient
    def request() -> int:
        answer = answers.pop(0)
        if isinstance(answer, KafkaException):
            raise answer
        return answer

    assert request() == 7


def test_request_that_is_refused_is_not_repeated() -> None:
    requests = 0

    @retry_transient
    def request() -> None:
        nonlocal requests
        requests += 1
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(KafkaException):
        request()
    assert requests == 1
