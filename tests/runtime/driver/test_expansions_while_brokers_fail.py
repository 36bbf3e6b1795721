"""KIP-287: processors are added while the only broker is killed or paused, in each phase that may fail.

The tasks run in this process, without Spark. Nothing is lost or repeated, and the status shows the reason.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import attrs
import pytest

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_expansion import expansion_status
from headwater_spark.driver.processor_move import state_move
from headwater_spark.driver.processor_move.entry_copy import MoveProducer
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.engine.records import Commits, OutputRecord
from headwater_spark.stream_threads import ExpansionPhase
from headwater_spark.worker import clients
from tests.runtime.driver.expanding_client import ExpandingClient
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(900)]

_FAILURE_SECONDS = 150.0
_REQUEST_SECONDS = 5.0
"""How long a request waits during an outage."""
_COMPLETE_SECONDS = 300.0
_CATCH_UP, _CUT = ExpansionPhase.CATCH_UP, ExpansionPhase.CUT


@attrs.define
class _Fault:
    """Stops the broker before an operation of a phase, once; `operation` counts them from 0."""

    stop: Callable[[], None]
    phase: ExpansionPhase
    operation: int
    current_phase: Callable[[], ExpansionPhase] = lambda: ExpansionPhase.IDLE
    is_caused: Event = attrs.field(factory=Event)

    def note_operation(self) -> None:
        if self.is_caused.is_set() or self.current_phase() is not self.phase:
            return
        if self.operation == 0:
            self.stop()
            self.is_caused.set()
        self.operation -= 1


@attrs.frozen
class _FaultyProducer:
    producer: MoveProducer
    fault: _Fault

    def send(self, records: Iterable[OutputRecord]) -> int:
        sent = self.producer.send(records)
        self.fault.note_operation()  # within a transaction
        return sent

    def commit(self, commits: Commits) -> None:
        self.fault.note_operation()
        self.producer.commit(commits)


def _faulty(fault: _Fault) -> type[KafkaMoveCluster]:
    class FaultyCluster(KafkaMoveCluster):
        @contextmanager
        def producer(self, name: str) -> Iterator[MoveProducer]:
            with super().producer(name) as producer:
                yield _FaultyProducer(producer, fault)

    return FaultyCluster


@attrs.frozen
class _Outage:
    stop: Callable[[Broker], None]
    end: Callable[[Broker], None]


_KILL, _PAUSE = _Outage(Broker.kill, Broker.start), _Outage(Broker.pause, Broker.resume)
_OPERATIONS = {
    "catch-up": (_CATCH_UP, 1),
    "cut, before the tasks are marked": (_CUT, 0),
    "cut, while some tasks are marked": (_CUT, 3),
    "cut, while the rest is copied": (_CUT, 6),
    "cut, while entries are deleted": (_CUT, 9),
}
_IN_SHORT = "cut, while the rest is copied, killed"
_CASES = [
    pytest.param(at, outage, id=name, marks=() if name == _IN_SHORT else pytest.mark.soak)
    for operation, at in _OPERATIONS.items()
    for ending, outage in (("killed", _KILL), ("paused", _PAUSE))
    for name in (f"{operation}, {ending}",)
]


@pytest.mark.parametrize(("at", "outage"), _CASES)
def test_an_expansion_is_completed_when_its_broker_answers_again(
    own_broker: Callable[[], Broker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: tuple[ExpansionPhase, int],
    outage: _Outage,
) -> None:
    monkeypatch.setattr(expansion_status, "RETRY_SECONDS", 0.5)
    with own_broker() as broker:
        patient = clients.REQUEST_SECONDS

        def stop() -> None:
            monkeypatch.setattr(clients, "REQUEST_SECONDS", _REQUEST_SECONDS)
            outage.stop(broker)

        fault = _Fault(stop, *at)
        monkeypatch.setattr(state_move, "KafkaMoveCluster", _faulty(fault))
        servers = broker.bootstrap_servers
        app = Sparkless(servers, "app", tmp_path, Topics(servers)).with_added_partitions()
        client = ExpandingClient.of(app.text(2), app.connection)
        fault.current_phase = lambda: client.expansion.status.phase
        with client.expanding(4):
            assert fault.is_caused.wait(_FAILURE_SECONDS)
            try:
                assert until(lambda: bool(client.expansion.status.problems), _FAILURE_SECONDS)
                status = client.expansion.status
                assert status.phase is fault.phase, status
                assert (status.processors, status.target) == (2, 4)
                assert "Kafka" in status.problems[0].summary, status
            finally:
                outage.end(broker)
                monkeypatch.setattr(clients, "REQUEST_SECONDS", patient)
            assert until(lambda: client.expansion.status.target is None, _COMPLETE_SECONDS), client
        status = client.expansion.status
        assert (status.processors, status.problems) == (4, ()), status
        app.check_moved(4)
