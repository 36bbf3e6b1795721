"""KIP-287: `headwater processors move --offline` on a real broker, killed at each of its steps."""

import json
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.cli.main import main
from headwater.kafka import Connection
from headwater.model.offset_metadata import MoveMark, MovePhase
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.processor_move import kafka_cluster
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.state_move import move_state, processor_status
from headwater_spark.worker.task_session import MoveIncompleteError, OtherNumberError
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.driver.sparkless import Sparkless

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


def _move_and_die(text: str, servers: str, operations: int) -> None:
    """Move the state in a process of its own, which dies after some operations."""
    die_after(operations)
    document = load_text(text, "app.yaml").documents[0]
    move_state(document, Connection(bootstrap_servers=(servers,)), report_no_progress)


def _kill_moves(app: Sparkless, processors: int, operations: Iterable[int]) -> Iterator[MoveMark | None]:
    """Kill moves after some operations each, until one is completed; yield the mark that each has left."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for each in operations:
        process = context.Process(target=_move_and_die, args=(app.text(processors), app.servers, each))
        process.start()
        process.join(120)
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode == 0:
            return
        yield processor_status(app.document(processors), app.connection).move
    raise AssertionError("no move was completed")


@pytest.mark.parametrize("distance", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_a_move_that_is_killed_at_each_step_is_completed(app: Sparkless, distance: int) -> None:
    """At each second step in `make test`, at each one in `make fuzz`."""
    killed = []
    for mark in _kill_moves(app, 4, range(0, 100, distance)):
        phase = None if mark is None else mark.phase
        if mark is not None and phase not in killed:
            with pytest.raises(MoveIncompleteError):
                app.open(mark.before)
        killed.append(phase)
    assert set(killed) >= {MovePhase.COPY, MovePhase.CLEAR}, killed
    app.check_moved(4)
    app.check_partitions_can_be_added(4)


def test_a_transaction_that_was_committed_a_moment_ago_is_awaited(
    app: Sparkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last commit of a client that stops; without waiting, about each second one is not visible yet."""
    partition = f"orders-{app.id}", 0
    with closing(KafkaMoveCluster(app.connection, app.id)) as cluster:
        before = cluster.committed([partition])[partition].offset or 0
        with cluster.producer("stopping") as producer:
            for offset in range(before + 1, before + 21):
                producer.commit({partition: (offset, "")})
                assert cluster.committed_after_stop([partition])[partition].offset == offset
        killed = Producer({"bootstrap.servers": app.servers, "transactional.id": "killed"})
        killed.init_transactions()
        killed.begin_transaction()
        group = Consumer({"bootstrap.servers": app.servers, "group.id": app.id}).consumer_group_metadata()
        killed.send_offsets_to_transaction([TopicPartition(*partition, 0)], group)
        monkeypatch.setattr(kafka_cluster, "_COMPLETION_SECONDS", 0.5)
        assert cluster.committed_after_stop([partition])[partition].offset == before + 20
        killed.abort_transaction()


def test_the_commands_move_the_state_and_show_it(app: Sparkless, tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as raised:
        move_state(app.document(8), app.connection, report_no_progress)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.PROCESSOR_COUNT}
    assert raised.value.problems[0].summary == f"{app.id} has fewer partitions than 8 processors."
    file = tmp_path / "app.yaml"
    cluster = ["--bootstrap-server", app.servers]

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["processors", *words, str(file), *cluster], standalone_mode=True)
        return done.exit_code, done.output

    file.write_text(app.text(2))
    code, text = run("status")
    assert code == 0, text
    assert f"{app.id}: sub-topology 0: 2 processors, partitions of orders-{app.id} (4)" in text
    file.write_text(app.text(4))
    code, text = run("status")
    assert code == 2
    assert "4 processors are declared." in text
    assert "  processor 3 gets partition 3, and keys of processor 1\n" in text
    added = json.loads(run("status", "--format", "json")[1])["applications"][0]["subtopologies"][0]["added"]
    assert [(each["processor"], each["keysOf"], each["partitions"]) for each in added] == [
        (2, 0, [2]),
        (3, 1, [3]),
    ]
    code, text = run("move")
    assert (code, "Missing option '--offline'" in text) == (64, True)
    moving = ("move", "--offline", "--checkpoint", str(tmp_path / "checkpoint"))
    (policies := tmp_path / "policies.yaml").write_text("policies: [topicPartitions: {max: 3}]\n")
    code, text = run(*moving, "--policies", str(policies))
    assert (code, "error[PolicyViolated]" in text, "policies.yaml:1" in text) == (1, True, True), text
    assert len(app.entries("counts")) == 2
    code, text = run(*moving)
    assert code == 0, text
    assert f"{app.id}: the state has moved from 2 to 4 processors" in text
    assert f"{app.id}: copying entries" in text
    assert run("status", "--format", "json")[0] == 0
    code, text = run(*moving)
    assert (code, f"{app.id}: the state has 4 processors." in text) == (0, True)
    file.write_text(app.text(2))
    code, text = run("status")
    assert (code, "2 processors are declared. Declare `processors: 4`, as the state has" in text) == (2, True)
    assert "Or stop the application" in text
    code, text = run(*moving)
    assert (code, "the state has moved from 4 to 2 processors" in text) == (0, True), text
    code, text = run("status")
    assert (code, f"{app.id}: sub-topology 0: 2 processors, " in text) == (0, True), text
    app.check_moved(2)


def test_processors_are_removed_and_added_again(app: Sparkless) -> None:
    """4 → 3 → 2 → 4 processors, the first move killed. The changelog topics keep 4 partitions."""
    move_state(app.document(4), app.connection, report_no_progress)
    app.produce(1)
    app.process(4)
    marked = []
    for mark in _kill_moves(app, 3, range(4, 100)):
        if mark is not None and mark.phase not in marked:
            with pytest.raises(MoveIncompleteError):
                app.open(4)
            marked.append(mark.phase)
    assert marked == [MovePhase.COPY, MovePhase.CLEAR]
    with pytest.raises(OtherNumberError):
        app.open(4)
    for before, after in ((3, 2), (2, 4)):
        app.produce(1)
        app.process(before)
        result = move_state(app.document(after), app.connection, report_no_progress)
        assert (result.before, result.after, len(app.entries("counts"))) == (before, after, 4)
    app.check_moved(4)
    app.check_partitions_can_be_added(4)


def test_processors_are_added_one_by_one(app: Sparkless) -> None:
    """2 → 3 → 4 for 4 partitions, and 5 for 8."""
    for processors in (3, 4):
        result = move_state(app.document(processors), app.connection, report_no_progress)
        assert (result.before, result.after) == (processors - 1, processors)
        app.produce(1)
        app.process(processors)
    app.expand(8)
    app.produce(2)
    app.process(4)
    assert move_state(app.document(5), app.connection, report_no_progress).before == 4
    app.check_moved(5)


def test_a_count_that_fits_to_another_initial_number_is_refused_at_the_start(app: Sparkless) -> None:
    """12 partitions of 4 processors are 3 that were doubled twice, or 4 that were not doubled."""
    move_state(app.document(4), app.connection, report_no_progress)
    app.produce(1)
    app.process(4)
    app.expand(12)
    with pytest.raises(ProblemsError) as raised:
        app.process(4)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.UNSAFE_EXPANSION}
    with pytest.raises(ProblemsError) as raised:
        move_state(app.document(6), app.connection, report_no_progress)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.STATE_NOT_MOVABLE}
