"""Batches of a task with two input topics on a broker, without Spark: what is held back, and committed."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, TopicPartition

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker import local
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.records import InputRecord
from headwater_spark.worker.interleaving import with_task_header
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_owner import TaskOwner
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_START_MS = 1_700_000_000_000
_MERGED = """
  - stream: {topics: [A, B], serdes: {key: string, value: string}}
  - mapValues: {value: value}
  - to: {topic: SINK, serdes: {key: string, value: string}}
"""


@attrs.frozen
class Task:
    """A task of topics `a` and `b`; a new owner is another process that resumes from what is committed."""

    topics: Topics
    servers: str
    request: BatchRequest
    a: str
    b: str
    sink: str
    owners: list[TaskOwner] = attrs.field(factory=list)

    def owner(self) -> TaskOwner:
        self.owners.append(TaskOwner())
        return self.owners[-1]

    def record(self, topic: str, offset: int, time: int) -> InputRecord:
        return (topic, 0, offset, _START_MS + time, b"k", b"%d" % time, ())

    def process(
        self, owner: TaskOwner, records: Iterable[InputRecord], *awaited: str, end_offset: int = 0
    ) -> BatchResult:
        request = attrs.evolve(
            self.request,
            awaited=frozenset((topic, 0) for topic in awaited),
            end_offsets={(topic, 0): end_offset for topic in (self.a, self.b)},
        )
        ordered = sorted(records, key=lambda record: record[:3])
        return owner.process_or_forward(request, 0, RecordInput(ordered), tick=False)

    def committed(self) -> dict[str, int]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": self.request.group})
        try:
            found = consumer.committed([TopicPartition(self.a, 0), TopicPartition(self.b, 0)], 90)
            return {each.topic: each.offset for each in found if each.offset >= 0}
        finally:
            consumer.close()

    def values(self) -> list[int]:
        return [int(record[5] or b"") for record in self.topics.get(self.sink)]


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def is_exact(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


@pytest.fixture(params=["native", "task"])
def task(
    request: pytest.FixtureRequest,
    is_exact: bool,  # noqa: FBT001 - a fixture
    kafka: local.LocalBroker,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> Iterator[Task]:
    id_ = unique("merged")
    a, b, sink = f"a-{id_}", f"b-{id_}", f"out-{id_}"
    text = _MERGED.replace("SINK", sink)
    text = text.replace("[A, B]", f"[{a}, {b}]")
    loaded = load_text(f"application: {{id: {id_}}}\ntopology:{text}", "test.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    counts = {a: 1, b: 1, sink: 1}
    (program,) = build_programs(document, build_nodes(document), compile_document(document, counts))
    topics = Topics(kafka.bootstrap_servers)
    topics.create(counts)
    batch_request = BatchRequest(
        application=id_,
        group=id_,
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        program=program,
        state_folder=tmp_path,
        partition_counts={a: 1, b: 1},
        exactly_once=is_exact,
        is_native=request.param == "native",
    )
    created = Task(topics, kafka.bootstrap_servers, batch_request, a, b, sink)
    yield created
    for owner in created.owners:
        owner.close()


def test_records_held_back_are_processed_by_the_next_owner(task: Task) -> None:
    first = [task.record(task.a, 0, 1), task.record(task.a, 5, 6), task.record(task.b, 0, 2)]
    result = task.process(task.owner(), first, task.b, end_offset=9)
    assert (result.read, result.held_back) == (2, ((task.a, 0, 5),))
    assert task.committed() == {task.a: 5, task.b: 9}
    second = [task.record(task.a, 5, 6), task.record(task.b, 9, 4)]
    result = task.process(task.owner(), second, end_offset=12)
    assert (result.read, result.skipped, result.held_back) == (2, 0, ())
    assert task.committed() == {task.a: 12, task.b: 12}
    assert task.values() == [1, 2, 4, 6]


def test_batch_that_must_wait_commits_nothing(task: Task) -> None:
    result = task.process(task.owner(), [task.record(task.a, 0, 1)], task.b, end_offset=7)
    assert (result.read, result.held_back) == (0, ((task.a, 0, 0),))
    assert task.committed() == {}
    assert task.values() == []


def test_batch_of_several_topics_is_in_the_order_of_time(task: Task) -> None:
    records = [task.record(task.a, 0, 3), task.record(task.a, 1, 4), task.record(task.b, 0, 1)]
    task.process(task.owner(), records)
    assert task.values() == [1, 3, 4]


def test_each_record_of_several_writers_is_processed_once(task: Task) -> None:
    """Task 1 wrote after task 0; the record that is held back is before one that was processed."""
    shared = attrs.evolve(task, request=attrs.evolve(task.request, shared_topics=frozenset({task.a})))
    outputs = [(task.a, None, b"k", b"%d" % time, _START_MS + time, ()) for time in (1, 5, 2)]
    written = [
        (topic, 0, offset, time, key, value, headers)
        for offset, (topic, _, key, value, time, headers) in enumerate(
            record
            for number, output in zip((0, 0, 1), outputs, strict=True)
            for record in with_task_header([output], frozenset({task.a}), number)
        )
    ]
    result = shared.process(shared.owner(), [*written, task.record(task.b, 0, 3)], task.b, end_offset=3)
    assert (result.read, result.held_back) == (3, ((task.a, 0, 1),))
    result = shared.process(shared.owner(), written[1:])
    assert (result.read, result.skipped) == (1, 1)
    assert task.values() == [1, 2, 3, 5]
