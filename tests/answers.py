"""What a test asks a cluster whose broker it has paused, killed or restarted."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

_PAUSE_SECONDS: Final = 0.1
_NOBODY_ANSWERED: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
    }
)

T = TypeVar("T")


def answered(ask: Callable[[], T], seconds: float) -> T:
    """Ask until somebody answers: a client's first request may meet a connection that has died meanwhile.

    Raises:
        KafkaException: for another reason, or when nobody has answered for `seconds`
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as problem:
            if problem.args[0].code() not in _NOBODY_ANSWERED or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
