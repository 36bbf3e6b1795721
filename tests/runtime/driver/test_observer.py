"""The observer of the active client, while no broker answers."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from headwater.kafka import Connection
from headwater_spark.driver.active_client import membership
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.worker import clients

_SECONDS = 60.0


class _Broker:
    """A broker that answers when the test lets it."""

    def __init__(self) -> None:
        self.is_asked, self.answers, self.is_closed = Event(), Event(), Event()

    def read(self, *_: object) -> dict[str, Any]:
        self.is_asked.set()
        assert self.answers.wait(_SECONDS)
        return {}

    def close(self) -> None:
        self.is_closed.set()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Broker]:
    broker = _Broker()
    monkeypatch.setattr(membership, "read_records", broker.read)
    monkeypatch.setattr(clients, "create_consumer", lambda *_: broker)
    yield broker
    broker.answers.set()


@pytest.fixture
def client(broker: _Broker) -> ActiveClient:
    """A client whose observer waits for an answer."""
    client = ActiveClient(Connection(bootstrap_servers=("127.0.0.1:1",)), "app", "client", None)
    client.start_observing(["orders"])
    assert broker.is_asked.wait(_SECONDS)
    return client


def test_close_does_not_wait_for_an_answer(broker: _Broker, client: ActiveClient) -> None:
    client.close()
    assert not broker.is_closed.is_set(), "the observer uses the consumer"
    broker.answers.set()
    assert broker.is_closed.wait(_SECONDS)
    client.close()


def test_a_stop_ends_the_wait_for_the_observer(broker: _Broker, client: ActiveClient) -> None:
    stopping, results = Event(), list[bool]()
    thread = Thread(target=lambda: results.append(client.acquire(["orders"], stopping)))
    thread.start()
    stopping.set()
    thread.join(_SECONDS)
    assert results == [False]
    assert not broker.answers.is_set()
    client.close()
    broker.answers.set()
    assert broker.is_closed.wait(_SECONDS)
