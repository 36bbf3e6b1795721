"""Local state whose stores have other entries than the program: after an edit, or another version of ours."""

from pathlib import Path

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.model.offset_metadata import LINEAGE_KEY
from headwater_spark.worker import restore, task_batch
from headwater_spark.worker.local_state import LmdbBackend, LocalState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.task_batch import OpenTask
from tests.runtime.worker.memory_broker import COUNTS, batch_request, process
from tests.runtime.worker.test_hosts_in_memory import Log

WINDOWS = """
application: {id: counted, config: {statestore.cache.max.bytes: 0}}
topology:
  - stream: {topic: in, serdes: {key: bytes, value: bytes}}
  - groupByKey:
  - windowedBy: {tumbling: {size: 10s, grace: 5s}}
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out, serdes: {key: time-windowed, value: long}}
"""
LATER = WINDOWS.replace("grace: 5s", "grace: 30m")
ON_CLOSE = WINDOWS.replace("grace: 5s}", "grace: 5s}, emit: onWindowClose")
WITH_SECOND_STORE = COUNTS.replace(
    "  - toStream", "  - mapValues: {value: value + 1, materialized: more}\n  - toStream"
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(task_batch, "open_session", log.session)
    monkeypatch.setattr(restore, "_restore_from_changelogs", log.read_changelogs)
    return log


def request_of(text: str, folder: Path) -> BatchRequest:
    request = batch_request(text, folder)
    return attrs.evolve(request, program=request.program.with_counts({"out": 1}))


def run(text: str, folder: Path, *offsets: int) -> tuple[BatchRequest, int]:
    """Process records in a new process of an application; return how many changelog records it restored."""
    request = request_of(text, folder)
    task = OpenTask(request, 0)
    try:
        return request, process(task, request, *offsets).restored
    finally:
        task.close()


def folder_of(request: BatchRequest) -> Path:
    return request.state_folder / "0_0"


def test_a_store_with_another_length_of_segments_is_restored(log: Log, tmp_path: Path) -> None:
    """Its windows would not be found: the next record would begin to count at 1."""
    run(WINDOWS, tmp_path, 0, 1, 2)
    with capture_logs() as logs:
        assert run(LATER, tmp_path, 3)[1] == 3
    assert log.counts() == {key: [1, 2, 3, 4] for key in log.counts()}
    (line,) = [each for each in logs if "layout" in each["event"]]
    assert (line["task"], line["store"], line["log_level"]) == ("counted-0-0", "counts", "info")
    assert run(LATER, tmp_path, 4)[1] == 0


def test_windows_that_are_emitted_on_close_from_now_on_are_all_emitted(log: Log, tmp_path: Path) -> None:
    """They are found by an index by time, which earlier windows do not have."""
    run(WINDOWS, tmp_path, 0, 1)
    before = len([each for each in log.records if each[0] == "out"])
    run(ON_CLOSE, tmp_path, 14_000)
    emitted = [each for each in log.records if each[0] == "out"][before:]
    assert [int.from_bytes(each[3] or b"", "big") for each in emitted] == [2]


def test_an_unchanged_application_restores_nothing(log: Log, tmp_path: Path) -> None:
    run(WINDOWS, tmp_path, 0)
    assert run(WINDOWS, tmp_path, 1)[1] == 0
    assert len(log.history) == 2


def test_state_of_a_version_without_layouts_is_used(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LocalState, "adopt_layouts", lambda *_: ())
        run(WINDOWS, tmp_path, 0)
    with capture_logs() as logs:
        assert run(WINDOWS, tmp_path, 1)[1] == 0
        assert run(WINDOWS, tmp_path, 2)[1] == 0
    assert log.history[-1] == (3, 3)
    (line,) = [each for each in logs if "earlier version" in each["event"]]
    assert (line["task"], line["log_level"]) == ("counted-0-0", "warning")


def test_another_format_of_entries_is_restored(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a later version, to which the application went back, or of an earlier one."""
    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.engine.stores.store_layouts.ENTRY_FORMAT", 2)
        run(COUNTS, tmp_path, 0, 1)
    assert run(COUNTS, tmp_path, 2)[1] == 2
    assert log.counts() == {b"a": [1, 2, 3]}


def test_a_store_whose_changelog_has_records_is_restored_alone(log: Log, tmp_path: Path) -> None:
    """As after a name of a store was changed and changed back, if local state was lost in between."""
    run(WITH_SECOND_STORE, tmp_path / "one", 0, 1)
    run(COUNTS, tmp_path / "two", 2)
    with capture_logs() as logs:
        request, _ = run(WITH_SECOND_STORE, tmp_path / "two", 3)
    assert [each for each in logs if "layout" in each["event"]] == []
    state = LocalState(folder_of(request))
    assert [int.from_bytes(value[-8:], "big") for _, value in state.store("more").range()] == [5]
    assert state.version == log.history[-1][0]
    state.release()


def test_a_restore_of_a_store_that_is_killed_is_completed(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, _ = run(WINDOWS, tmp_path, 0, 1, 2)
    edited = request_of(LATER, tmp_path)

    def killed(_: BatchRequest, __: int, state: LocalState, ___: object) -> int:
        topic = next(iter(edited.program.changelogs.values()))
        state.commit(state.version - 1, {topic: 0})  # the first chunk was empty
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(restore, "_restore_from_changelogs", killed)
        with pytest.raises(KeyboardInterrupt):
            OpenTask(edited, 0)
    backend = LmdbBackend(folder_of(request))
    assert LINEAGE_KEY in backend.latest().metadata
    assert backend.latest().version < log.history[-1][0]
    backend.release()
    assert run(LATER, tmp_path, 3)[1] == 3
    assert list(log.counts().values()) == [[1, 2, 3, 4]]


def test_a_store_without_a_changelog_is_cleared_with_a_warning(log: Log, tmp_path: Path) -> None:
    text = WINDOWS.replace("materialized: counts", "materialized: {store: counts, logging: false}")
    run(text, tmp_path, 0, 1)
    with capture_logs() as logs:
        run(text.replace("grace: 5s", "grace: 30m"), tmp_path, 2)
    assert list(log.counts().values()) == [[1, 2, 1]]
    (line,) = [each for each in logs if "layout" in each["event"]]
    assert (line["store"], line["log_level"]) == ("counts", "warning")
