"""The batches of one task on a real broker, without Spark: commits, skipped records, restored state."""

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Client
from pathlib import Path

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.nodes import SinkNode
from headwater.spec import load_text
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.engine.program import PartitionRule, SubtopologyProgram, build_programs
from headwater_spark.engine.program.partitioning import SinkPartitioning
from headwater_spark.engine.records import InputRecord
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.task_owner import TaskOwner
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.worker.test_task_input import columns

pytestmark = pytest.mark.broker

_TOPOLOGY = """
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: SINK, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Application:
    """One sub-topology with a store, its topics, and the request for its batches."""

    topics: Topics
    request: BatchRequest
    source: str
    sink: str
    as_columns: bool = False
    owners: list[TaskOwner] = attrs.field(factory=list)

    def owner(self) -> TaskOwner:
        """Return the owner of another process."""
        self.owners.append(TaskOwner())
        return self.owners[-1]

    def record(self, offset: int, key: bytes) -> InputRecord:
        return (self.source, 0, offset, 1_700_000_000_000 + offset, key, b"v", ())

    def process(
        self, owner: TaskOwner, records: Sequence[InputRecord], request: BatchRequest | None = None
    ) -> BatchResult:
        input_ = columns(records) if self.as_columns else RecordInput(records)
        return owner.process_or_forward(request or self.request, 0, input_, tick=False)

    def counts(self) -> list[int]:
        return [int.from_bytes(record[5] or b"", "big") for record in self.topics.get(self.sink)]

    @property
    def state(self) -> Path:
        return self.request.state_folder / "0_0"


@pytest.fixture(
    params=[(True, False), (False, False), (True, True), (False, True)],
    ids=["exactly once", "at least once", "exactly once, in columns", "at least once, in columns"],
)
def application(
    request: pytest.FixtureRequest, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Application]:
    id_ = unique("work")
    source, sink = f"in-{id_}", f"out-{id_}"
    text = _TOPOLOGY.replace("SOURCE", source).replace("SINK", sink)
    config = "{statestore.cache.max.bytes: 0}"
    loaded = load_text(f"application: {{id: {id_}, config: {config}}}\ntopology:{text}", "test.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, {source: 1, sink: 1})
    (program,) = build_programs(document, build_nodes(document), compiled)
    topics = Topics(kafka.bootstrap_servers)
    topics.create({source: 1, sink: 1, f"{id_}-counts-changelog": 1})
    batch_request = BatchRequest(
        application=id_,
        group=id_,
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        program=program,
        state_folder=tmp_path,
        partition_counts={source: 1},
        exactly_once=request.param[0],
    )
    created = Application(topics, batch_request, source, sink, as_columns=request.param[1])
    yield created
    for owner in created.owners:
        owner.close()


def test_committed_records_are_skipped_when_a_batch_is_repeated(application: Application) -> None:
    owner = application.owner()
    first = [application.record(0, b"a"), application.record(1, b"a")]
    assert application.process(owner, first).read == 2
    again = application.process(owner, [*first, application.record(2, b"a")])
    assert (again.read, again.skipped) == (1, 2)
    assert application.counts() == [1, 2, 3]


def test_another_process_resumes_where_the_first_one_stopped(application: Application) -> None:
    first, second = application.owner(), application.owner()
    application.process(first, [application.record(0, b"a")])
    result = application.process(second, [application.record(0, b"a"), application.record(1, b"a")])
    assert (result.read, result.skipped, result.restored) == (1, 1, 0)
    assert application.counts() == [1, 2]


def test_forwarded_batch_is_processed_though_its_sender_died(application: Application) -> None:
    """Spark kills a Python worker when it cancels its task."""
    owner = application.owner()
    application.process(owner, [application.record(0, b"a")])
    name = application.request.task_name(0)
    address, _, key = Lease.owner_of(application.request.state_folder, name).partition("\n")
    with Client(address, authkey=key.encode()) as caller:
        caller.send((application.request, 0, RecordInput([application.record(1, b"a")]), False))
    assert until(lambda: application.counts() == [1, 2], 60)
    assert until(lambda: not any("_answer" in each.name for each in threading.enumerate()), 60)


def test_lost_state_is_restored_from_the_changelog(application: Application) -> None:
    owner = application.owner()
    application.process(owner, [application.record(0, b"a"), application.record(1, b"b")])
    owner.close()
    shutil.rmtree(application.state)
    result = application.process(application.owner(), [application.record(2, b"a")])
    assert result.restored == 2
    assert application.counts() == [1, 1, 2]


def test_reopened_state_is_not_restored(application: Application) -> None:
    for offset in range(3):
        owner = application.owner()
        assert application.process(owner, [application.record(offset, b"a")]).restored == 0
        owner.close()
    assert application.counts() == [1, 2, 3]


def test_outdated_state_is_restored_from_the_newer_records_only(
    application: Application, tmp_path: Path
) -> None:
    """Another machine has owned the task in between."""
    first = application.owner()
    application.process(first, [application.record(0, b"a"), application.record(1, b"b")])
    first.close()
    other = application.owner()
    on_other_machine = attrs.evolve(application.request, state_folder=tmp_path / "other-machine")
    assert application.process(other, [application.record(2, b"a")], on_other_machine).restored == 2
    other.close()
    assert application.process(application.owner(), [application.record(3, b"a")]).restored == 1
    assert application.counts() == [1, 1, 2, 3]


def test_prepared_batch_is_applied_if_killed_after_the_commit(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = application.owner()
    application.process(owner, [application.record(0, b"a")])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalState, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            application.process(owner, [application.record(1, b"a")])
    result = application.process(
        application.owner(), [application.record(1, b"a"), application.record(2, b"a")]
    )
    assert (result.read, result.skipped, result.restored) == (1, 1, 0)
    assert application.counts() == [1, 2, 3]


def test_batch_has_no_effect_if_killed_before_the_commit(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not application.request.exactly_once:
        pytest.skip("at least once: sent records are not taken back")
    owner = application.owner()
    application.process(owner, [application.record(0, b"a")])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.worker.task_session.TaskSession.commit", killed)
        with pytest.raises(KeyboardInterrupt):
            application.process(owner, [application.record(1, b"a")])
    assert application.counts() == [1]
    result = application.process(application.owner(), [application.record(1, b"a")])
    assert (result.read, result.skipped) == (1, 0)
    assert application.counts() == [1, 2]


def test_record_for_a_missing_partition_waits_and_is_not_lost(application: Application) -> None:
    """KIP-878: `TaskMigratedException`; the batch is retried."""
    program = _ranged(application.request.program).with_counts({application.sink: 1})
    batch_request = attrs.evolve(application.request, program=program)
    records = [application.record(0, b"a"), application.record(1, b"z")]
    result = application.process(application.owner(), records, batch_request)
    assert result.missing_partition == (application.sink, 1, 1)
    application.topics.expand(application.sink, 2)
    program = program.with_counts({application.sink: 2})
    expanded = attrs.evolve(batch_request, program=program, layout_version=1)
    assert application.process(application.owner(), records, expanded).read == 2
    if batch_request.exactly_once:
        written = application.topics.get(application.sink)
        assert [(record[1], record[4]) for record in written] == [(0, b"a"), (1, b"z")]


def _ranged(program: SubtopologyProgram) -> SubtopologyProgram:
    """Send keys from m on to partition 1."""
    config = {"static.partitioner.class": "range", "static.partitioner.bounds": "m"}
    sinks = [node for node in program.nodes if isinstance(node, SinkNode)]
    rule = SinkPartitioning(PartitionRule.STATIC, "range")
    return attrs.evolve(
        program,
        application=attrs.evolve(program.application, config={**program.application.config, **config}),
        partitioning={node.name: rule for node in sinks},
    )
