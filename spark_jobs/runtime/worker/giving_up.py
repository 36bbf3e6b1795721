"""Calls into the Kafka client library that may never return.

librdkafka (2.16) now and then waits without end in `send_offsets_to_transaction` when its broker was
restarted meanwhile, whatever time-out it was given.
"""

from collections.abc import Callable
from threading import Thread

from confluent_kafka import KafkaError, KafkaException

_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the library's own codes begin with an underscore


def within(seconds: float, what: str, call: Callable[[], None]) -> None:
    """Make `call`; raise what it raises, and `KafkaException` if it has not returned by then.

    It is left behind in a thread of its own, which keeps no process alive. What it might still do has to be
    harmless: a transaction is, for the next session of its id fences it.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            failures.append(error)

    thread = Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise KafkaException(KafkaError(_TIMED_OUT, f"{what}: no answer within {seconds:g} s"))
    for failure in failures:
        raise failure
