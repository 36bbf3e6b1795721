"""Fixtures of the tests without a Kafka broker."""

from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from headwater_spark.worker import task_owner
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.owner_socket import OwnerSocket
from tests.runtime.worker.memory_broker import COUNTS, Broker, batch_request


@pytest.fixture(autouse=True)
def closed_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the sockets of the task owners that a test creates: they are of processes that ended."""
    sockets: list[OwnerSocket] = []

    class Recorded(OwnerSocket):
        def __init__(self, folder: Path, answer: Callable[[Connection], None]) -> None:
            super().__init__(folder, answer)
            sockets.append(self)

    monkeypatch.setattr(task_owner, "OwnerSocket", Recorded)
    yield
    for each in sockets:
        each.close()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr("headwater_spark.worker.task_batch.open_session", broker.session)
    monkeypatch.setattr("headwater_spark.worker.restore._restore_from_changelogs", broker.read_changelogs)
    return broker


@pytest.fixture
def request_(tmp_path: Path) -> BatchRequest:
    return batch_request(COUNTS, tmp_path)
