"""KIP-287: two clients expand an application at once, on a real broker. Nothing of the state is lost."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

import attrs
import pytest

from headwater.model.problems import Problem, ProblemCode
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_expansion import expansion_status
from headwater_spark.driver.processor_move.attempts import pause_seconds
from headwater_spark.driver.processor_move.entry_copy import EntryCopy
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult
from tests.runtime.driver.expanding_client import ExpandingClient
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]


@pytest.fixture
def app(
    kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Sparkless:
    """Return an application with 2 processors and 4 partitions, of which all have records."""
    monkeypatch.setattr(expansion_status, "RETRY_SECONDS", 0.05)
    app = Sparkless(
        kafka.bootstrap_servers, unique("app"), tmp_path, Topics(kafka.bootstrap_servers, keeps_producer=True)
    )
    return app.with_added_partitions()


@attrs.define
class _Meanwhile:
    """Warm-up jobs that restore nothing; in the first one, another client does something."""

    other: Callable[[], None]
    state_folder: Path = Path("unused")
    jobs: int = 0

    def start_workers(self, tasks: int, stopping: Event) -> None: ...

    def run(self, request: WarmUpRequest, _: Event) -> WarmUpResult:
        self.jobs += 1
        if self.jobs == 1:
            self.other()
        return WarmUpResult(done=len(request.tasks))


def test_an_attempt_begins_again_if_another_client_has_deleted_what_it_copied(app: Sparkless) -> None:
    """The other client is killed then."""

    def begin() -> None:
        other = ExpandingClient.of(app.text(2), app.connection).expansion
        with other._open_move(4) as (move, cluster, _):
            other._announce_expansion(move, cluster)
            with cluster.producer(move.producer_name) as producer:
                EntryCopy(move, cluster, other._note_copied)._delete_leftovers(producer)

    jobs = _Meanwhile(begin)
    client = ExpandingClient.of(app.text(2), app.connection, jobs=jobs)
    client.expand(4)
    assert client.expansion.status.processors == 4, client.expansion.status
    assert jobs.jobs > 1
    app.produce(1)
    app.process(4)
    app.check_moved(4)


def test_a_client_copies_nothing_after_another_one_has_added_the_processors(app: Sparkless) -> None:
    """Otherwise it would copy the tombstones of the entries that moved."""
    stopped: list[Problem] = []

    def complete() -> None:
        other = ExpandingClient.of(app.text(2), app.connection)
        other.run_until(lambda: other.expansion.status.target is None)
        assert other.expansion.status.processors == 4
        app.produce(1)
        app.process(4)

    client = ExpandingClient.of(
        app.text(2), app.connection, jobs=_Meanwhile(complete), on_errors=stopped.extend
    )
    with client.expanding(4):
        assert until(lambda: bool(stopped), 60), client.expansion.status
    assert [problem.code for problem in stopped] == [ProblemCode.PROCESSOR_COUNT]
    assert stopped[0].fix == "Start it again: it uses the present number."
    app.check_moved(4)


def test_clients_wait_longer_after_each_attempt_that_was_lost() -> None:
    assert [pause_seconds(5, lost) for lost in (1, 2, 3, 40)] == [10, 20, 40, 300]
