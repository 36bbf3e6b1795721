"""KIP-287: another client, such as an agent without `processors`, has expanded the changelog topics.

The commands, the plan and the application are real, on a real broker. Nothing of the state is in the added
partitions.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.model.offset_metadata import OffsetMetadata
from headwater.model.problems import ProblemCode, errors
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.state_move import move_state
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
_SECONDS = 60.0


class _Commands:
    """Runs commands with the document of an application, whose number of processors is `declared`."""

    def __init__(self, app: Sparkless, folder: Path, declared: int) -> None:
        self._app, self._folder, self._declared = app, folder, declared

    def run(self, *words: str) -> tuple[int, str]:
        """Return the exit code and the output in one line."""
        file = self._folder / "app.yaml"
        file.write_text(self._app.text(self._declared))
        done = CliRunner().invoke(main, [*words, str(file), "--bootstrap-server", self._app.servers])
        return done.exit_code, " ".join(done.output.split())

    def move(self) -> tuple[int, str]:
        return self.run("processors", "move", "--offline", "--checkpoint", str(self._folder / "checkpoint"))


def _changelogs(app: Sparkless) -> list[str]:
    return sorted(
        name for name in app.topics.names() if name.startswith(f"{app.id}-") and "changelog" in name
    )


def _expand_changelogs(app: Sparkless, partitions: int) -> None:
    for topic in _changelogs(app):
        app.topics.expand(topic, partitions)


def test_the_application_continues_with_the_number_that_its_tasks_have_committed(
    app: Sparkless, tmp_path: Path
) -> None:
    """2 processors for 4 partitions; the changelog topics get 4 partitions. Then processors are added."""
    running = ApplicationTopics(app.document(2), app.connection)
    running.prepare()
    _expand_changelogs(app, 4)
    assert {problem.code for problem in errors(running.check().problems)} == {ProblemCode.PROCESSOR_COUNT}
    running.prepare()
    assert not errors(running.check().problems)
    commands = _Commands(app, tmp_path, 2)
    code, text = commands.run("processors", "status")
    assert (code, "sub-topology 0: 2 processors" in text) == (0, True), text
    code, text = commands.run("plan")
    assert code == 0, text
    assert "2 processors for 4 partitions (changelog topics keep 4)" in text
    assert commands.move() == (0, f"{app.id}: the state has 2 processors.")
    started = ApplicationTopics(app.document(4), app.connection).prepare()
    assert started.compiled.application.processors == 2
    app.produce(1)
    app.process(2)
    assert [len(entries) > 0 for entries in app.entries("counts")] == [True, True, False, False]
    move = move_state(app.document(4), app.connection, report_no_progress)
    assert (move.before, move.after) == (2, 4)
    app.check_moved(4)


def test_the_advice_of_a_move_and_of_a_plan_restores_topics_of_an_earlier_version(
    kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions of Headwater did not commit the number: the added partitions look like processors."""
    encode = OffsetMetadata.encode
    with monkeypatch.context() as earlier:
        earlier.setattr(
            OffsetMetadata,
            "encode",
            lambda *values, **named: encode(*values, **{**named, "declared": None}),
        )
        topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
        app = Sparkless(kafka.bootstrap_servers, unique("app"), tmp_path, topics).with_added_partitions()
    _expand_changelogs(app, 4)
    commands = _Commands(app, tmp_path, 2)
    code, text = commands.move()
    assert code == 1, text
    assert "keep `processors: 2`: `headwater plan` says how to restore these topics." in text
    code, text = commands.run("plan")
    assert (code, "error[ProcessorCount]" in text) == (ExitCode.REFUSED, True), text
    assert "Then keep `processors: 2`. To keep the state, copy the records of each partition" in text
    assert "Write the copies to the same partitions before the application starts again." in text

    changelogs = _changelogs(app)
    copies = [record for topic in changelogs for record in app.records(topic) if record[1] < 2]
    assert not [record for topic in changelogs for record in app.records(topic) if record[1] >= 2]
    for topic in changelogs:
        app.topics.delete(topic)
    assert until(lambda: not _changelogs(app), _SECONDS)
    shutil.rmtree(app.folder / "state")
    ApplicationTopics(
        app.document(2), app.connection
    ).prepare()  # as `pulumi up`: see `pulumi/test_processors`
    assert until(lambda: _changelogs(app) == changelogs, _SECONDS)
    app.topics.send(
        (topic, partition, key, value, timestamp, headers)
        for topic, partition, _, timestamp, key, value, headers in copies
    )
    app.produce(1)
    app.process(2)
    app.check_results(0)
    assert commands.move() == (0, f"{app.id}: the state has 2 processors.")
    move_state(app.document(4), app.connection, report_no_progress)
    app.check_moved(4)
