"""What a session of a task commits, and what the next one reads."""

import base64
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka import OFFSET_INVALID
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.model.offset_metadata import (
    MoveMark,
    MovePhase,
    OffsetMetadata,
    decode_count,
    decode_initial,
    decode_metadata,
    decode_positions,
    decode_processor,
)
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker import clients, task_session
from headwater_spark.worker.task_session import (
    MoveIncompleteError,
    OtherNumberError,
    OtherProcessorError,
    TaskSession,
    UnreadableMetadataError,
    open_session,
)
from tests.runtime.worker.memory_broker import COUNTS, batch_request

A, B = ("a", 2), ("b", 2)


@attrs.define
class Producer:
    """Remembers what is committed."""

    commits: list[Commits] = attrs.field(factory=list)

    def commit(self, commits: Commits) -> None:
        self.commits.append(commits)


def session(**fields: Any) -> tuple[TaskSession, Producer]:  # noqa: ANN401 - the fields of TaskSession
    producer: Any = Producer()
    known = {"producer": producer, "metadata": OffsetMetadata(3), "offsets": {A: 5, B: 7}, "positions": {}}
    return TaskSession(**(known | fields)), producer


def time_of(text: str) -> int:
    return int.from_bytes(base64.b64decode(text)[1:9], "big", signed=True)


def test_a_commit_has_the_metadata_and_the_time_of_each_partition() -> None:
    current, producer = session()
    current.commit({A: 9, B: 8}, {A: 1_000}, OffsetMetadata(4, {"clock": 1}))
    [commits] = producer.commits
    assert {partition: offset for partition, (offset, _) in commits.items()} == {A: 9, B: 8}
    assert {partition: time_of(text) for partition, (_, text) in commits.items()} == {A: 1_000, B: -1}
    assert [decode_metadata(text) for _, text in commits.values()] == [OffsetMetadata(4, {"clock": 1})] * 2
    assert (current.offsets, current.metadata) == ({A: 9, B: 8}, OffsetMetadata(4, {"clock": 1}))
    assert not current.has_positions


def test_a_commit_without_records_keeps_the_largest_timestamp() -> None:
    """A Kafka Streams application that takes over the offsets begins with this stream time."""
    current, producer = session(times={A: 1_000})
    current.commit({A: 9}, {A: 500}, OffsetMetadata(4))
    current.commit({A: 12}, {}, OffsetMetadata(5))
    assert [time_of(commits[A][1]) for commits in producer.commits] == [1_000, 1_000]


def test_an_offset_without_a_commit_is_kept() -> None:
    current, _ = session()
    current.commit({A: 9}, {}, OffsetMetadata(4))
    assert current.offsets == {A: 9, B: 7}


def test_read_positions_are_kept_until_the_offset_passes_them() -> None:
    current, producer = session(positions={A: {"0": 8, "1": 12}})
    found = [current.has_positions]
    current.commit({A: 8, B: 7}, {}, OffsetMetadata(4))
    assert current.positions == {A: {"1": 12}, B: {}}
    assert decode_positions(producer.commits[0][A][1]) == {"1": 12}
    current.commit({A: 9}, {}, OffsetMetadata(5), {A: {"0": 10, "1": 12, "2": 9}})
    assert current.positions[A] == {"0": 10, "1": 12}
    current.commit({A: 12}, {}, OffsetMetadata(6))
    found.append(current.has_positions)
    assert found == [True, False]
    assert decode_positions(producer.commits[-1][A][1]) == {}


@attrs.frozen
class Request:
    """The part of a `BatchRequest` that a session reads."""

    connection: str = "connection"
    group: str = "app"
    may_lose_state: bool = False
    processors: Processors | None = None
    partitions: int = 4

    @property
    def tasks(self) -> int:
        return self.partitions if self.processors is None else self.processors.count

    def task_name(self, partition: int) -> str:
        return f"app-0-{partition}"

    def input_partitions(self, partition: int) -> list[TopicPartition]:
        return [("a", partition), ("b", partition), ("c", partition)]


def test_the_input_of_a_task_has_a_partition_of_each_topic_but_global_ones(tmp_path: Path) -> None:
    request = batch_request(COUNTS, tmp_path)
    wide = attrs.evolve(request, partition_counts={"in": 2, "more": 3, "all": 4})
    assert wide.input_partitions(1) == (("in", 1), ("more", 1), ("all", 1))
    assert wide.input_partitions(2) == (("more", 2), ("all", 2))
    assert wide.tasks == 4
    program = attrs.evolve(request.program, sources={"all": "source"})
    with_table = attrs.evolve(wide, global_programs=(program,))
    assert with_table.input_partitions(2) == (("more", 2),)
    assert with_table.tasks == 3
    assert with_table.owners == [0, 1, 2]


def test_the_input_of_a_processor_has_its_partitions_of_each_topic(tmp_path: Path) -> None:
    request = batch_request(COUNTS, tmp_path)
    counts = {"in": 4, "more": 3}
    grown = attrs.evolve(request, partition_counts=counts, processors=Processors(2, 2))
    assert grown.tasks == 2
    assert grown.input_partitions(0) == (("in", 0), ("in", 2), ("more", 0), ("more", 2))
    assert grown.input_partitions(1) == (("in", 1), ("in", 3), ("more", 1))
    assert grown.owners == [0, 1, 0, 1]


def test_offset_metadata_names_the_processor_of_an_added_partition() -> None:
    of_processor_0, producer = session(task=0, processors=Processors(2, 2))
    first, added = ("a", 0), ("a", 2)
    metadata = OffsetMetadata(4, {"clock": 1})
    of_processor_0.commit({first: 5, added: 6}, {}, metadata)
    texts = {partition: text for partition, (_, text) in producer.commits[0].items()}
    assert texts[first] == metadata.encode(-1, declared=2)
    assert texts[added] != texts[first]
    assert {decode_processor(text, partition[1]) for partition, text in texts.items()} == {0}
    assert [decode_metadata(text) for text in texts.values()] == [metadata] * 2


def test_offset_metadata_has_the_initial_number_between_two_doublings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: dict[int, int] = {}
    for processors in range(4, 9):
        producer = Producer()
        monkeypatch.setattr(task_session, "_offset_reader", lambda *_: "reader")
        monkeypatch.setattr(task_session, "_open_producer", lambda *_, made=producer, **__: made)
        monkeypatch.setattr(clients, "read_committed", lambda *_: [])
        request: Any = Request(processors=Processors.from_count(processors, 4))
        metadata = OffsetMetadata(4, {"clock": 1})
        open_session(request, 0).commit({A: 5}, {}, metadata)
        ((_, text),) = producer.commits[0].values()
        assert decode_metadata(text) == metadata
        assert decode_initial([text], processors) == (4 if 4 < processors < 8 else processors)
        found[processors] = len(text)
    assert found[4] == found[8] < found[6]


def test_a_session_commits_the_number_of_processors_and_opens_with_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Changelog topics keep the partitions of processors that were removed: they do not show the number."""
    producer = Producer()
    monkeypatch.setattr(task_session, "_offset_reader", lambda *_: "reader")
    monkeypatch.setattr(task_session, "_open_producer", lambda *_, **__: producer)
    monkeypatch.setattr(clients, "read_committed", lambda *_: [])
    two: Any = Request(processors=Processors.from_count(2, None, is_recorded=True))
    metadata = OffsetMetadata(4, {"clock": 1})
    open_session(two, 0).commit({A: 5}, {}, metadata)
    ((_, text),) = producer.commits[0].values()
    assert decode_metadata(text) == metadata
    assert decode_count(["", text]) == 2
    monkeypatch.setattr(clients, "read_committed", lambda *_: [KafkaTopicPartition(*A, 5, text)])
    assert open_session(two, 0).offsets == {A: 5}
    for other in (None, Processors(4, 4)):
        request: Any = Request(processors=other)
        with pytest.raises(OtherNumberError, match="the state has 2 processors"):
            open_session(request, 0)
    # Only the changelog topics of another sub-topology have more partitions than there are processors.
    request = Request(partitions=2)
    assert open_session(request, 0).offsets == {A: 5}


def test_a_session_does_not_replace_a_text_of_a_later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    later = base64.b64encode(b"\x04" + bytes(12)).decode()
    monkeypatch.setattr(task_session, "_offset_reader", lambda *_: "reader")
    monkeypatch.setattr(task_session, "_open_producer", lambda *_, **__: "producer")
    monkeypatch.setattr(clients, "read_committed", lambda *_: [KafkaTopicPartition("a", 2, 5, later)])
    request: Any = Request()
    with pytest.raises(UnreadableMetadataError, match=r"partition 2 of a .* is in a format of a later"):
        open_session(request, 0)


def test_a_partition_that_no_task_has_processed_has_no_processor() -> None:
    assert [decode_processor(text, 2) for text in ("", "AgAAAAAAAAAA")] == [None, None]


@pytest.mark.parametrize("text", [OffsetMetadata(3).encode(0), OffsetMetadata(3).encode(0, {}, 1)])
def test_a_session_does_not_open_with_a_partition_of_another_processor(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(task_session, "_offset_reader", lambda *_: "reader")
    monkeypatch.setattr(task_session, "_open_producer", lambda *_, **__: "producer")
    monkeypatch.setattr(clients, "read_committed", lambda *_: [KafkaTopicPartition("a", 2, 5, text)])
    request: Any = Request(may_lose_state=True)
    assert open_session(request, 0).offsets == {("a", 2): 5}
    request = Request()
    owner = decode_processor(text, 2)
    with pytest.raises(OtherProcessorError, match=f"belongs to processor {owner}, not to processor 0"):
        open_session(request, 0)


@pytest.mark.parametrize("phase", MovePhase)
def test_a_session_does_not_open_while_the_state_moves(
    monkeypatch: pytest.MonkeyPatch, phase: MovePhase
) -> None:
    """Also not if the document accepts to lose state."""
    text = OffsetMetadata(3).encode(0, {}, 0, MoveMark(phase, 2, 4))
    monkeypatch.setattr(task_session, "_offset_reader", lambda *_: "reader")
    monkeypatch.setattr(task_session, "_open_producer", lambda *_, **__: "producer")
    monkeypatch.setattr(clients, "read_committed", lambda *_: [KafkaTopicPartition("a", 2, 5, text)])
    request: Any = Request(may_lose_state=True)
    with pytest.raises(MoveIncompleteError, match="partition 2 of a is not read"):
        open_session(request, 0)


def test_a_session_begins_with_what_was_committed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier owners are fenced first, so that they cannot commit after the offsets were read."""
    calls: list[object] = []

    def committed(reader: str, partitions: list[TopicPartition]) -> list[KafkaTopicPartition]:
        calls.append((reader, partitions))
        return [
            KafkaTopicPartition(*A, 5, OffsetMetadata(3, {"clock": 1}).encode(30, {"1": 9})),
            KafkaTopicPartition(*B, 7, OffsetMetadata(4, {"clock": 2}).encode(20)),
            KafkaTopicPartition("c", 2, OFFSET_INVALID),
        ]

    def open_producer(request: Request, task: int, *, single: bool) -> str:
        calls.append((request.task_name(task), single))
        return "producer"

    monkeypatch.setattr(task_session, "_offset_reader", lambda connection, group: f"{connection} {group}")
    monkeypatch.setattr(task_session, "_open_producer", open_producer)
    monkeypatch.setattr(clients, "read_committed", committed)
    request: Any = Request()
    found = open_session(request, 2, single=True)
    assert calls == [("app-0-2", True), ("connection app", [A, B, ("c", 2)])]
    producer: Any = "producer"
    assert found == TaskSession(
        producer,
        OffsetMetadata(4, {"clock": 2}),
        offsets={A: 5, B: 7},
        positions={A: {"1": 9}},
        times={A: 30, B: 20, ("c", 2): -1},
        task=2,
    )
    monkeypatch.setattr(clients, "read_committed", lambda *_: [KafkaTopicPartition("a", 2, 0)])
    first = open_session(request, 2)
    assert (first.metadata, first.offsets, first.positions) == (OffsetMetadata(), {A: 0}, {})
    assert calls[-1] == ("app-0-2", False)
