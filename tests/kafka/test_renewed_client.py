"""A client that failed is replaced, and dropped after its last answer."""

import threading
import weakref

import pytest

from headwater.kafka.pending_requests import RenewedClient


class Client:
    def __init__(self) -> None:
        self.answered = threading.Event()


def test_a_client_is_replaced_after_a_failure_and_dropped_after_its_last_answer() -> None:
    dropped = threading.Event()
    renewed = RenewedClient(Client, lambda client: client.answered.wait(60))
    old = renewed.client
    weakref.finalize(old, dropped.set)
    with pytest.raises(TimeoutError), renewed.used(TimeoutError):
        raise TimeoutError
    assert renewed.client is not old
    answered = old.answered
    del old
    assert not dropped.is_set()
    answered.set()
    assert dropped.wait(60)


def test_a_client_is_kept_after_other_exceptions_and_success() -> None:
    renewed = RenewedClient(Client)
    kept = renewed.client
    with renewed.used(TimeoutError):
        pass
    with pytest.raises(ValueError, match="other"), renewed.used(TimeoutError):
        raise ValueError("other")
    assert renewed.client is kept
