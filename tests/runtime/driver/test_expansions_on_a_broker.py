"""KIP-287: processors are added to an application on a real broker; its process is killed at each step."""

import gc
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from headwater.cli.console import ExitCode
from headwater.compiler import compile_document
from headwater.kafka import Connection, KafkaClusterReader, snapshot_request
from headwater.kafka.processor_state import with_processor_state
from headwater.model.offset_metadata import MoveMark, MovePhase
from headwater.model.problems import ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.commands.processors import status as status_command
from headwater_spark.driver.processor_expansion import expansion, expansion_status, held_queries
from headwater_spark.driver.processor_move import state_move
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, MoveProducer
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.state_move import move_state, processor_status
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.engine.records import Commits, OutputRecord
from headwater_spark.engine.serdes.internal_topics import names_processor
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from headwater_spark.worker import task_batch
from headwater_spark.worker.task_session import MoveIncompleteError
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.driver.expanding_client import ExpandingClient, Query
from tests.runtime.driver.joining_sparkless import JoiningSparkless
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_TIMEOUT_SECONDS = 120.0
_ENDLESS = 1_000_000_000
_FAILS, _SEEMS_TO_FAIL = 3, 5
_EACH, _EACH_SECOND = range(100), range(0, 100, 2)
_SHORTLY_BEFORE_THE_CUT = 9
_FEW_BEFORE_THE_CUT = (0, 5, *range(_SHORTLY_BEFORE_THE_CUT, 100))
"""The first 11 steps copy entries while the application runs; the steps after them are of the cut."""


def _expand_and_die(text: str, servers: str, operations: int) -> None:
    die_after(operations)
    ExpandingClient.of(text, Connection(bootstrap_servers=(servers,))).expand(4)


@pytest.fixture
def unwindowed(kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Sparkless:
    """Return the same without windows: the old processors delete the entries that move later."""
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    app = Sparkless(kafka.bootstrap_servers, unique("app"), tmp_path, topics, has_windows=False)
    return app.with_added_partitions()


@pytest.fixture
def joining(kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> JoiningSparkless:
    """Return the same with a foreign-key join, of which some subscriptions name a processor."""
    app = JoiningSparkless(
        kafka.bootstrap_servers, unique("app"), tmp_path, Topics(kafka.bootstrap_servers, keeps_producer=True)
    )
    app.with_added_partitions()
    values = [value for entries in app.entries("named-subscription-store") for value in entries.values()]
    assert {names_processor(value) for value in values} == {True, False}
    return app


@pytest.mark.parametrize(
    ("application", "steps"),
    [
        pytest.param("app", _FEW_BEFORE_THE_CUT, id="app, few before the cut"),
        pytest.param("joining", _EACH_SECOND, id="joining, each second"),
        *(
            pytest.param(each, _EACH, id=each, marks=pytest.mark.soak)
            for each in ("app", "unwindowed", "joining")
        ),
    ],
)
def test_an_expansion_that_is_killed_at_each_step_is_continued_at_the_next_start(
    application: str, steps: Sequence[int], request: pytest.FixtureRequest
) -> None:
    """Before the cut the application processes records with 2 processors, from then on it does not."""
    app: Sparkless = request.getfixturevalue(application)
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    killed: list[MovePhase | None] = []
    for operations in steps:
        process = context.Process(target=_expand_and_die, args=(app.text(2), app.servers, operations))
        process.start()
        process.join(_TIMEOUT_SECONDS)
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode == 0:
            break
        status = processor_status(app.document(4), app.connection)
        phase = None if status.move is None else status.move.phase
        if phase not in killed:
            if phase in (None, MovePhase.CATCH_UP):
                app.produce(1)
                app.process(status.parts[0].processors or 0)
            else:
                with pytest.raises(MoveIncompleteError):
                    app.open(4)
        killed.append(phase)
    if steps is _FEW_BEFORE_THE_CUT:
        assert killed[steps.index(_SHORTLY_BEFORE_THE_CUT)] is MovePhase.CATCH_UP, killed
    phases = set(MovePhase) if app.has_windows else {MovePhase.CATCH_UP, MovePhase.COPY}
    assert set(killed) - {None} == phases, killed
    app.check_moved(4)
    if application != "joining":
        app.check_partitions_can_be_added(4)


def test_an_expansion_that_copies_is_completed_offline_with_the_number_that_was_requested(
    app: Sparkless,
) -> None:
    """The application stops while the cut waits for a batch.

    As the reason of a long wait says: the document may still declare the number before the request.
    """
    client = ExpandingClient.of(app.text(2), app.connection, busy=_ENDLESS)
    with client.expanding(4):
        assert until(lambda: client.expansion.status.phase is ExpansionPhase.CUT, _TIMEOUT_SECONDS)
    _check_shown(app)
    move = processor_status(app.document(2), app.connection).move
    assert move is not None
    assert (move.phase, move.after) == (MovePhase.CATCH_UP, 4)
    with pytest.raises(ProblemsError) as raised:
        move_state(app.document(2), app.connection, lambda *_: None)
    assert "Declare `processors: 4`, and run `headwater processors move --offline` again." in str(
        raised.value
    )
    move_state(app.document(4), app.connection, lambda *_: None)
    app.check_moved(4)


def test_entries_that_moved_are_deleted_after_the_expansion(
    unwindowed: Sparkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local state of the old processors stays as it is. Meanwhile, the state can move again."""
    app = unwindowed
    monkeypatch.setattr(task_batch, "_DELETED_AT_ONCE", 3)
    before = app.entries("counts")
    for processors in (3, 4):
        client = ExpandingClient.of(app.text(2), app.connection)
        client.expand(processors)
        assert client.expansion.status.processors == processors, client.expansion.status
    moved = app.entries("counts")
    assert moved[:2] == before[:2]
    assert moved[2]
    app.produce(1)
    app.process(4)
    assert app.restored["0", 0] == app.restored["0", 1] == 0
    some = app.entries("counts")
    assert 0 < len(some[0]) < len(moved[0])
    move_state(app.document(2), app.connection, lambda *_: None)
    assert sum(map(len, app.entries("counts"))) == len({*before[0], *before[1]})
    app.check_moved(2)
    app.check_partitions_can_be_added(2)


def test_one_processor_is_added_by_two_expansions(app: Sparkless) -> None:
    """2 → 3 → 4 of 4 partitions; the second one is requested after a restart with the first document.

    Then 4 → 2 while it is stopped, and 2 → 3 again.
    """
    for processors in (3, 4):
        client = ExpandingClient.of(app.text(2), app.connection)
        client.expand(processors)
        assert client.expansion.status.processors == processors, client.expansion.status
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, EntryCopy)], "it has many keys"
        app.produce(1)
        app.process(processors)
    move_state(app.document(2), app.connection, lambda *_: None)
    client = ExpandingClient.of(app.text(2), app.connection)
    client.expand(3)  # to a partition that the changelog topics have kept
    assert client.expansion.status.processors == 3, client.expansion.status
    assert len(app.entries("counts")) == 4
    app.check_moved(3)


class _FailingProducer:
    """Of seven commits, one fails, and one succeeds but seems to fail."""

    commits = 0

    def __init__(self, producer: MoveProducer) -> None:
        self._producer = producer

    def send(self, records: Iterable[OutputRecord]) -> int:
        return self._producer.send(records)

    def commit(self, commits: Commits) -> None:
        _FailingProducer.commits += 1
        number = _FailingProducer.commits % 7
        if number != _FAILS:
            self._producer.commit(commits)
        if number in (_FAILS, _SEEMS_TO_FAIL):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


class _FailingCluster(KafkaMoveCluster):
    @contextmanager
    def producer(self, name: str) -> Iterator[MoveProducer]:
        with super().producer(name) as producer:
            yield _FailingProducer(producer)


def test_an_expansion_is_repeated_when_requests_fail(app: Sparkless, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_move, "KafkaMoveCluster", _FailingCluster)
    monkeypatch.setattr(_FailingProducer, "commits", 0)
    monkeypatch.setattr(expansion_status, "RETRY_SECONDS", 0.05)
    client = ExpandingClient.of(app.text(2), app.connection)
    for _ in range(3):  # the announcement may fail: then it is refused
        client.expand(4)
    assert client.expansion.status.processors == 4, client.expansion.status
    assert _FailingProducer.commits > 7
    app.check_moved(4)


def test_declared_processors_are_added_after_the_start(
    app: Sparkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While that is refused, the application runs with those that it has, and tries again.

    It is refused, as a requested number is, until older records are processed: they are in the partitions of
    their keys at the earlier count.
    """
    monkeypatch.setattr(expansion_status, "_DECLARED_RETRY_SECONDS", 0.05)
    app.produce(1)
    app.expand(8)
    requested = ExpandingClient.of(app.text(2), app.connection)
    requested.expand(4)
    assert requested.expansion.status.processors == 2
    [problem] = requested.expansion.status.problems
    assert "was written with another partition count" in problem.summary
    assert "Then request the expansion again." in problem.fix
    client = ExpandingClient.of(app.text(4), app.connection)
    expansion = client.expansion
    assert expansion.status == ProcessorsStatus(2, 4, ExpansionPhase.CHECK)
    client.run_until(lambda: bool(expansion.status.problems))
    assert attrs.evolve(expansion.status, problems=(), remaining=0) == ProcessorsStatus(
        2, 4, ExpansionPhase.CHECK
    )
    app.process(2)
    client.run_until(lambda: expansion.status.target is None)
    assert (expansion.status.processors, expansion.status.problems) == (4, ())


def test_partitions_that_are_added_while_the_cut_waits_for_a_batch_belong_to_the_new_processors(
    app: Sparkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch takes long; the application finds and processes them meanwhile, with the old processors."""
    monkeypatch.setattr(expansion, "_BATCH_SECONDS", 0.0)
    monkeypatch.setattr(expansion_status, "RETRY_SECONDS", 0.05)
    client = ExpandingClient.of(app.text(2), app.connection, busy=_ENDLESS)
    with client.expanding(4):
        assert until(lambda: _Waits(client).has_reason("waits for a batch of sub-topology"), _TIMEOUT_SECONDS)
        app.expand(8)
        app.produce(1)
        with client.layout_changes:  # queries read partitions of the layout only, which no cut changes
            client.specs.update(ApplicationTopics(app.document(2), app.connection).prepare())
        app.process(2)
        for query in client.queries.values():
            query.busy = 0
        assert until(lambda: client.expansion.status.target is None, _TIMEOUT_SECONDS)
    assert client.expansion.status.processors == 4
    assert not client.expansion.status.problems
    app.check_moved(4)


def test_nothing_is_announced_while_records_are_partitioned_for_fewer_partitions(
    app: Sparkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of a sub-topology without state that began before the input was expanded may still do that.

    The status shows what the expansion waits for.
    """
    monkeypatch.setattr(held_queries, "_SILENT_SECONDS", 0.5)
    client = ExpandingClient.of(app.text(2), app.connection)
    client.specs.most_partitions = 2
    mapping = client.queries["mapping"] = Query(busy=_ENDLESS)
    changelog = f"{app.id}-counts-changelog"
    with client.expanding(4):
        waits = _Waits(client)
        assert until(lambda: waits.has_reason("until the application knows all partitions"), _TIMEOUT_SECONDS)
        assert waits.found == f"2 of 4 of {app.id}-regions-repartition, 2 of 4 of orders-{app.id}"
        assert mapping.busy == _ENDLESS
        client.specs.most_partitions = 1_000
        assert until(lambda: waits.has_reason("for a batch of sub-topology mapping."), _TIMEOUT_SECONDS)
        assert mapping.busy < _ENDLESS
        assert client.expansion.status.phase is ExpansionPhase.CHECK
        assert app.topics.partitions(changelog) == 2
        mapping.busy = 0
        assert until(lambda: client.expansion.status.target is None, _TIMEOUT_SECONDS)
    assert not client.expansion.status.problems
    app.check_moved(4)


@attrs.define
class _Waits:
    """The reason for which a client's expansion waits."""

    client: ExpandingClient
    found: str | None = None

    def has_reason(self, text: str) -> bool:
        for problem in self.client.expansion.status.problems:
            self.found = problem.found
            return text in problem.summary
        return False


def _check_shown(app: Sparkless) -> None:
    """Check what plans and `headwater processors status` find while an expansion from 2 to 4 copies."""
    document, reader = app.document(4), KafkaClusterReader(app.connection)
    snapshot = reader.read(snapshot_request([document], {}))
    assert snapshot.partitions[f"{app.id}-counts-changelog"] == 4
    found = with_processor_state(reader, snapshot, [compile_document(document, snapshot.partitions)])
    assert found.processors == {app.id: 2}
    assert found.moves == {app.id: MoveMark(MovePhase.CATCH_UP, 2, 4)}
    file = app.folder / "app.yaml"
    file.write_text(app.text(4))
    shown = CliRunner().invoke(status_command, [str(file), "--bootstrap-server", app.servers])
    assert shown.exit_code == ExitCode.DRIFT, shown.output
    assert "sub-topology 0: 2 of 4 processors" in shown.output
    assert "it is being expanded from 2 to 4 processors" in shown.output
