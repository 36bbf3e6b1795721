"""Requests to a cluster whose broker a test has paused, killed or restarted."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

ATTEMPT_SECONDS: Final = 5.0
"""The time limit of an attempt: a request on a dead connection gets no answer."""
_PAUSE_SECONDS: Final = 0.1
_NO_RESPONSE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
    }
)

T = TypeVar("T")


def answered(ask: Callable[[], T], seconds: float) -> T:
    """Retry until a broker responds: a client's first request may use a connection that is dead.

    Args:
        ask: sends a request, and waits `ATTEMPT_SECONDS` for the response
        seconds: how long the request is repeated

    Raises:
        KafkaException: for another reason, or if no broker responds within `seconds`
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as problem:
            if problem.args[0].code() not in _NO_RESPONSE or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
