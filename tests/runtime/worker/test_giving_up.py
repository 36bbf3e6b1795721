"""Calls that never return must not keep a task waiting for ever."""

from threading import Event

import pytest
from confluent_kafka import KafkaException

from spark_jobs.runtime.worker.giving_up import within


def test_a_call_that_returns_is_just_made() -> None:
    made: list[int] = []
    within(60, "commit", lambda: made.append(1))
    assert made == [1]


def test_what_a_call_raises_is_raised() -> None:
    def call() -> None:
        raise LookupError("fenced")

    with pytest.raises(LookupError, match="fenced"):
        within(60, "commit", call)


def test_a_call_that_does_not_return_is_given_up() -> None:
    never = Event()

    def call() -> None:
        never.wait()

    with pytest.raises(KafkaException, match=r"commit: no answer within 0\.05 s"):
        within(0.05, "commit", call)
    never.set()
