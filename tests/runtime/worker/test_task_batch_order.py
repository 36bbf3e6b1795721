"""Batches of several topics and writers: what is processed now, held back, and read again."""

import attrs
import pytest

from headwater.model.offset_metadata import decode_positions
from headwater_spark.engine.records import InputRecord
from headwater_spark.worker.interleaving import with_task_header
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import PartitionedInput, RecordInput
from tests.runtime.worker.memory_broker import Broker, batch_request
from tests.runtime.worker.test_task_input import columns

A, B = ("a", 0), ("b", 0)
MERGED = """
application: {id: merged}
topology:
  - stream: {topics: [a, b], serdes: {key: string, value: string}}
  - to: {topic: out, serdes: {key: string, value: string}}
"""


@pytest.fixture
def merged(request_: BatchRequest) -> BatchRequest:
    """Return a request for two topics; topic b has more records than the batch."""
    return batch_request(MERGED, request_.state_folder, awaited=frozenset({B, ("b", 1)}))


def record(topic: str, offset: int, time: int) -> InputRecord:
    return (topic, 0, offset, time, b"k", b"%d" % time, ())


def values(broker: Broker) -> list[bytes | None]:
    return [each[3] for each in broker.records]


def process(task: OpenTask, request: BatchRequest, *records: InputRecord, tick: bool = False) -> BatchResult:
    return task.process_batch(request, RecordInput(records), tick=tick)


def test_records_are_held_back_that_may_follow_those_of_another_topic(
    broker: Broker, merged: BatchRequest
) -> None:
    task = OpenTask(merged, 0)
    first = process(task, merged, record("a", 0, 10), record("a", 1, 30), record("b", 0, 20))
    assert (first.read, first.written, first.stream_time) == (2, 2, 20)
    assert first.held_back == (("a", 0, 1),)
    assert {partition: offset for partition, (offset, _) in broker.committed.items()} == {A: 1, B: 1}
    again = process(task, merged, record("a", 0, 10), record("a", 1, 30), record("b", 1, 40))
    assert (again.read, again.skipped) == (2, 1)
    assert again.held_back == ()
    assert values(broker) == [b"10", b"20", b"30", b"40"]


def test_the_end_of_a_batch_is_not_committed_for_a_topic_with_records_held_back(
    broker: Broker, merged: BatchRequest
) -> None:
    request = attrs.evolve(merged, end_offsets={A: 9, B: 9})
    process(OpenTask(merged, 0), request, record("a", 0, 10), record("a", 1, 30), record("b", 0, 20))
    assert {partition: offset for partition, (offset, _) in broker.committed.items()} == {A: 1, B: 9}


def test_only_partitions_of_the_task_are_awaited(broker: Broker, merged: BatchRequest) -> None:
    request = attrs.evolve(merged, awaited=frozenset({("b", 1)}))
    result = process(OpenTask(merged, 0), request, record("a", 0, 30), record("b", 0, 20))
    assert (result.read, result.held_back) == (2, ())
    assert broker.commits == 1


def test_nothing_is_committed_if_all_records_are_held_back(broker: Broker, merged: BatchRequest) -> None:
    task = OpenTask(merged, 0)
    result = process(task, merged, record("a", 3, 30))
    assert result == BatchResult(partition=0, held_back=(("a", 0, 3),), opened=1)
    assert broker.commits == 0
    process(task, merged, record("a", 3, 30), tick=True)
    assert broker.commits == 1
    assert not broker.records


def written_by(task: int, offset: int, time: int) -> InputRecord:
    output = ("a", 0, b"k", b"%d" % time, time, ())
    ((*_, headers),) = with_task_header([output], frozenset({"a"}), task)
    return (*A, offset, time, b"k", b"%d" % time, headers)


def test_records_of_several_writers_are_merged_by_time(broker: Broker, merged: BatchRequest) -> None:
    request = attrs.evolve(merged, awaited=frozenset(), shared_topics=frozenset({"a", "out"}))
    records = [written_by(0, 0, 10), written_by(0, 1, 30), written_by(1, 2, 20)]
    result = process(OpenTask(request, 0), request, *records)
    assert (result.read, broker.committed[A][0]) == (3, 3)
    assert values(broker) == [b"10", b"20", b"30"]
    assert {each[5] for each in broker.records} == {(("headwater.task", b"0"),)}


def test_a_new_owner_continues_after_the_position_of_each_writer(
    broker: Broker, merged: BatchRequest
) -> None:
    """The record of the second writer was processed before the one at the committed offset."""
    request = attrs.evolve(merged, shared_topics=frozenset({"a"}))
    records = [written_by(0, 0, 10), written_by(0, 1, 30), written_by(1, 2, 20)]
    first = process(OpenTask(request, 0), request, *records, record("b", 0, 25))
    assert (first.read, first.held_back) == (3, (("a", 0, 1),))
    assert decode_positions(broker.committed[A][1]) == {"1": 3}
    complete = attrs.evolve(request, awaited=frozenset())
    second = process(OpenTask(request, 0), complete, *records, written_by(1, 3, 40))
    assert (second.read, second.skipped) == (2, 2)
    assert values(broker) == [b"10", b"20", b"25", b"30", b"40"]


JOINED = """
application: {id: joined}
topology:
  - stream: {topic: a, as: left, serdes: {key: string, value: string}}
  - table: {topic: b, as: right, materialized: rows, serdes: {key: string, value: string}}
  - join: {from: left, with: right, value: "concat(left, '+', right)", serdes: {value: string}}
  - to: {topic: out, serdes: {key: string, value: string}}
"""


def test_a_failed_batch_of_several_topics_is_processed_again(
    broker: Broker, request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns of the input are released by the first attempt."""
    request = batch_request(JOINED, request_.state_folder)
    input_ = PartitionedInput([columns([record("a", 0, 20)]), columns([record("b", 0, 10)])])
    task = OpenTask(request, 0)

    def fail(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(Broker, "commit", fail)
        with pytest.raises(OSError):  # noqa: PT011 - raised above
            task.process_batch(request, input_, tick=False)
    task.close()
    result = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert (result.read, result.skipped) == (2, 0)
    assert b"20+10" in values(broker)
    again = OpenTask(request, 0).process_batch(request, input_, tick=False)
    assert (again.read, again.skipped) == (0, 2)
