"""Calls into the Kafka client library that never return."""

from threading import Event

import pytest
from confluent_kafka import KafkaException

from spark_jobs.runtime.worker.clients import call_with_timeout


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
