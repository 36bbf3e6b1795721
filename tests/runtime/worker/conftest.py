"""Fixtures of the tests without a Kafka broker."""

from pathlib import Path

import pytest

from headwater_spark.worker.messages import BatchRequest
from tests.runtime.worker.memory_broker import COUNTS, Broker, batch_request


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr("headwater_spark.worker.task_batch.open_session", broker.session)
    monkeypatch.setattr("headwater_spark.worker.restore._restore_from_changelogs", broker.read_changelogs)
    return broker


@pytest.fixture
def request_(tmp_path: Path) -> BatchRequest:
    return batch_request(COUNTS, tmp_path)
