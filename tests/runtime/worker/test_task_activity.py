"""The files in which workers say what their slow tasks do, and what the driver reads."""

import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from headwater.toolchain.broker.readiness import until
from headwater_spark.engine.records import NO_RECORD
from headwater_spark.engine.task import Task
from headwater_spark.processors import Processor, Record
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.restore import restore_topic
from headwater_spark.worker.slow_batches import SlowBatches
from headwater_spark.worker.task_activity import TaskActivity, read_activities, write_activity
from tests.runtime.record_chunks import chunk_of
from tests.runtime.topology_runner import NO_CACHE, TopologyRunner

_SECONDS = 60.0


def test_a_processor_that_hangs_is_shown_with_its_record_until_it_ends(tmp_path: Path) -> None:
    found: list[TaskActivity] = []

    class User(Processor):
        def process(self, _record: Record) -> None:
            assert until(lambda: bool(read_activities(tmp_path, 0.0)), _SECONDS)
            found.extend(read_activities(tmp_path, found_at))

    runner = TopologyRunner(
        "[stream: {topic: in}, process: {class: User, name: enrich}]", NO_CACHE, {"User": User}
    )
    task = runner.tasks["0"]
    found_at = 2**40
    with SlowBatches(60.0, 0.01).watch_batch("0_0", lambda: task.context.current.record, tmp_path):
        runner.feed(runner.record("in", b"k", b"v", 1))
    (activity,) = found
    assert (activity.task, activity.subtopology, activity.processor) == ("0_0", "0", "enrich")
    assert activity.record == "in, partition 0, offset 0"
    assert activity.code.startswith(f"{__name__}, line ")
    assert activity.seconds == pytest.approx(found_at - activity.since, abs=1)
    assert not read_activities(tmp_path, 0.0), "the batch has ended"


def test_a_task_that_restores_shows_how_far_it_is(tmp_path: Path, request_: BatchRequest) -> None:
    state, (topic,) = MemoryState(), request_.program.changelogs.values()
    task = Task(request_.program, 0, state)
    records = [(topic, 0, offset, 1, b"k", bytes(8), ()) for offset in (10, 11)]
    chunks = [attrs.evolve(chunk_of(each, at), end=110) for each, at in ((records, 40), ((), 110))]

    def shows(*expected: tuple[str, int, int]) -> bool:
        def found() -> list[tuple[str, int, int]]:
            return [
                (each.restoring, each.restored, each.to_restore) for each in read_activities(tmp_path, 0.0)
            ]

        return until(lambda: found() == [*expected], _SECONDS)

    with SlowBatches(60.0, 0.01).watch_batch("0_0", lambda: NO_RECORD, tmp_path):
        restored = restore_topic(task, state, chunks, topic, None)
        next(restored)
        assert shows((topic, 30, 100))
        assert list(restored) == [0]
        assert shows(("", 0, 0))


def test_files_of_killed_processes_and_of_other_versions_are_ignored(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_activity(tmp_path, TaskActivity(task="0_0", since=1.0, process=ended.pid))
    assert read_activities(tmp_path, 2.0) == []
    write_activity(tmp_path, TaskActivity(task="0_1", since=1.0))
    (tmp_path / "activities" / "0_2.json").write_text('{"later": 1}')
    (tmp_path / "activities" / "0_3.json").write_text("[")
    assert [(each.task, each.seconds) for each in read_activities(tmp_path, 3.5)] == [("0_1", 2.5)]


def test_a_file_of_an_earlier_client_is_ignored(tmp_path: Path) -> None:
    """A container that is started again gives the same numbers to its processes."""
    write_activity(tmp_path, TaskActivity(task="0_0", since=1.0))
    write_activity(tmp_path, TaskActivity(task="0_1", since=3.0))
    assert [each.task for each in read_activities(tmp_path, 4.0, 2.0)] == ["0_1"]


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "activities").write_text("")
    write_activity(tmp_path, TaskActivity(task="0_0", since=1.0))
    assert read_activities(tmp_path, 2.0) == []
