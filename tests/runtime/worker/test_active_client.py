"""A worker with at least once writes and commits only for the active client."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest
from confluent_kafka import TopicPartition

from headwater.model.client_record import ClientRecord, client_group
from headwater.toolchain.broker import local
from headwater_spark.worker import clients
from headwater_spark.worker.state_proof import PROOF_SECONDS, ClientReplacedError, boot_seconds
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.worker.several_hosts import COUNTED, Clock, Hosts, task_request

pytestmark = pytest.mark.broker

_BATCH = 20
_OWN = ClientRecord(term=1, process="own", name="a on one")
_OTHER = ClientRecord(term=2, process="other", name="b on two")


@pytest.fixture
def hosts(kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Iterator[Hosts]:
    request = task_request(kafka.bootstrap_servers, unique("app"), tmp_path, COUNTED, exactly_once=False)
    created = Hosts(Topics(kafka.bootstrap_servers), request, tmp_path)
    created.request = attrs.evolve(request, client="own", client_topic=created.source)
    created.create_topics()
    yield created
    created.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with Clock().used(monkeypatch) as used:
        yield used


def _record(hosts: Hosts, record: ClientRecord) -> None:
    group = client_group(hosts.request.application)
    with closing(clients.create_consumer(hosts.request.connection, group)) as consumer:
        offset = TopicPartition(hosts.source, 0, 0, record.encode())
        consumer.commit(offsets=[offset], asynchronous=False)


def _prove(hosts: Hosts, age: float) -> None:
    """Let the client pass with the next batches that it was active for certain so many seconds ago."""
    hosts.request = attrs.evolve(hosts.request, client_at=boot_seconds() - age)


def test_a_recent_proof_needs_no_record(hosts: Hosts) -> None:
    _prove(hosts, 0)
    _record(hosts, _OTHER)
    assert hosts.run_batch(0, 0, _BATCH).read == _BATCH
    hosts.check_counts(_BATCH)


def test_with_an_old_proof_the_record_decides(hosts: Hosts) -> None:
    _prove(hosts, PROOF_SECONDS + 1)
    _record(hosts, _OWN)
    assert hosts.run_batch(0, 0, _BATCH).read == _BATCH
    _record(hosts, _OTHER)
    with pytest.raises(ClientReplacedError, match="is active: b on two"):
        hosts.run_batch(0, _BATCH, 2 * _BATCH)
    assert hosts.committed() == _BATCH
    hosts.check_counts(_BATCH)


def test_a_client_without_a_record_is_not_trusted(hosts: Hosts) -> None:
    with pytest.raises(ClientReplacedError, match="is active: no client"):
        hosts.run_batch(0, 0, _BATCH)
    assert hosts.committed() < 0


def test_a_worker_that_was_stopped_before_its_commit_commits_nothing(hosts: Hosts, clock: Clock) -> None:
    """Another client has become active meanwhile, and has not committed yet."""
    _prove(hosts, 0)
    hosts.run_batch(0, 0, _BATCH)

    def stop() -> None:
        clock.ahead += PROOF_SECONDS + 1
        _record(hosts, _OTHER)

    with pytest.raises(ClientReplacedError):
        hosts.process(0, _BATCH, 2 * _BATCH, stop, version=hosts.version)
    assert hosts.committed() == _BATCH
