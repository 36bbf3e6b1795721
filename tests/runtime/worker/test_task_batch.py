"""A task's batches against a broker in memory: what is committed, and what the next owner finds."""

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs
import pytest

from infra.compiler import build_nodes, compile_document
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.engine.program import build_programs
from spark_jobs.runtime.engine.records import InputRecord, OutputRecord, TopicPartition
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult
from spark_jobs.runtime.worker.offset_metadata import OffsetMetadata, decode, latest_metadata
from spark_jobs.runtime.worker.task_batch import OpenTask
from spark_jobs.runtime.worker.task_input import RecordInput
from spark_jobs.runtime.worker.transaction import TaskSession

IN = ("in", 0)
COUNTS = """
application: {id: counted, config: {statestore.cache.max.bytes: 0}}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out, serdes: {key: string, value: long}}
"""
PRINTED = """
application: {id: printed}
topology:
  - stream: {topic: in, as: read, serdes: {key: string, value: json}}
  - print: {from: read}
  - to: {from: read, topic: out, serdes: {key: string, value: json}}
"""


@attrs.define
class Broker:
    """Committed offsets with their metadata, and committed records; it is the producer of each session."""

    committed: dict[TopicPartition, tuple[int, str]] = attrs.field(factory=dict)
    records: list[OutputRecord] = attrs.field(factory=list)
    open_records: list[OutputRecord] = attrs.field(factory=list)
    restores: int = 0
    commits: int = 0

    def session(self, _: BatchRequest, __: int, *, single: bool = False) -> TaskSession:
        assert not single
        metadata = latest_metadata(text for _, text in self.committed.values()) or OffsetMetadata()
        offsets = {partition: offset for partition, (offset, _) in self.committed.items()}
        return TaskSession(self, metadata, offsets)

    def read_changelogs(self, *_: object) -> int:
        self.restores += 1
        return 0

    def send(self, records: Iterable[OutputRecord]) -> int:
        self.open_records = list(records)
        return len(self.open_records)

    def commit(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self.committed.update(commits)
        self.records += self.open_records
        self.open_records = []
        self.commits += 1

    def abort(self) -> None:
        self.open_records = []

    @property
    def metadata(self) -> OffsetMetadata:
        found = decode(self.committed[IN][1])
        assert found is not None
        return found

    def counts(self) -> list[int]:
        return [int.from_bytes(record[3] or b"", "big") for record in self.records if record[0] == "out"]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr("spark_jobs.runtime.worker.task_batch.open_session", broker.session)
    monkeypatch.setattr("spark_jobs.runtime.worker.restore._restore_from_changelogs", broker.read_changelogs)
    return broker


@pytest.fixture
def request_(tmp_path: Path) -> BatchRequest:
    document = load_text(COUNTS, "counted.yaml").documents[0]
    compiled = compile_document(document, {"in": 1, "out": 1})
    (program,) = build_programs(document, build_nodes(document), compiled)
    return BatchRequest(
        application="counted",
        group="counted",
        connection=Connection(bootstrap_servers=("unused:9092",)),
        program=program,
        state_folder=tmp_path,
        partition_counts={"in": 1},
    )


def record(offset: int) -> InputRecord:
    return (*IN, offset, 1_000 + offset, b"a", b"v", ())


def process(task: OpenTask, request: BatchRequest, *offsets: int, tick: bool = False) -> BatchResult:
    return task.process_batch(request, RecordInput([record(offset) for offset in offsets]), tick=tick)


def test_half_of_a_surrogate_pair_can_be_printed(
    broker: Broker, request_: BatchRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    document = load_text(PRINTED, "printed.yaml").documents[0]
    compiled = compile_document(document, {"in": 1, "out": 1})
    (program,) = build_programs(document, build_nodes(document), compiled)
    request = attrs.evolve(request_, program=program)
    input_ = RecordInput([(*IN, 0, 1_000, b"a", rb'"x\ud800"', ())])
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert result.written == 1
    captured = capsys.readouterr()
    assert "\\ud800" in captured.out + captured.err  # the log may be configured by another test
    assert broker.commits == 1


def test_each_batch_commits_the_next_version_of_the_state(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    for number in range(3):
        assert process(task, request_, number).read == 1
        assert broker.committed[IN][0] == number + 1
        assert broker.metadata.version == number + 1
    assert broker.counts() == [1, 2, 3]


def test_reopened_state_is_not_restored(broker: Broker, request_: BatchRequest) -> None:
    """The committed version is that of the local state, so only the first owner reads the changelogs."""
    for number in range(3):
        task = OpenTask(request_, 0)
        assert process(task, request_, number).restored == 0
        task.close()
        assert broker.restores == 1
    assert broker.counts() == [1, 2, 3]


def test_a_batch_that_was_not_committed_has_no_effect(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = OpenTask(request_, 0)
    process(task, request_, 0)

    def refuse(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(Broker, "commit", refuse)
        with pytest.raises(OSError):  # noqa: PT011 - raised above
            process(task, request_, 1)
    task.close()
    process(OpenTask(request_, 0), request_, 1)
    assert (broker.counts(), broker.restores, broker.metadata.version) == ([1, 2], 1, 2)


def test_a_committed_batch_is_applied_by_the_next_owner(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = OpenTask(request_, 0)
    process(task, request_, 0)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("spark_jobs.runtime.worker.local_state.LocalState.commit", die)
        with pytest.raises(KeyboardInterrupt):
            process(task, request_, 1)
    task.close()
    process(OpenTask(request_, 0), request_, 1, 2)
    assert (broker.counts(), broker.restores, broker.metadata.version) == ([1, 2, 3], 1, 3)


def test_committed_records_are_skipped(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    first = process(task, request_, 0, 1)
    assert (first.partition, first.read, first.skipped, first.written) == (0, 2, 0, 4)
    assert (first.dropped, first.handler_message, first.stream_time) == (0, None, 1_001)
    assert first.state_bytes > 0
    assert process(task, request_, 0, 1) == BatchResult(partition=0, skipped=2)
    again = process(task, request_, 1, 2)
    assert (again.read, again.skipped) == (1, 1)
    assert broker.commits == 2


def test_a_tick_commits_the_unchanged_offset(broker: Broker, request_: BatchRequest) -> None:
    task = OpenTask(request_, 0)
    result = process(task, request_, tick=True)
    assert (result.read, result.stream_time, broker.committed[IN][0]) == (0, -1, 0)
    process(task, request_, 0)
    process(task, request_, tick=True)
    assert broker.committed[IN][0] == 1
    assert broker.metadata.version == 3
    assert not process(task, request_).read
    assert broker.commits == 3


def test_the_end_of_a_batch_may_be_behind_transaction_markers(broker: Broker, request_: BatchRequest) -> None:
    with_end = attrs.evolve(request_, end_offsets={IN: 7})
    process(OpenTask(request_, 0), with_end, 0)
    assert broker.committed[IN][0] == 7


def test_metadata_has_the_largest_timestamp_of_the_partition(broker: Broker, request_: BatchRequest) -> None:
    process(OpenTask(request_, 0), request_, 0, 1)
    assert int.from_bytes(base64.b64decode(broker.committed[IN][1])[1:9], "big") == 1_001
