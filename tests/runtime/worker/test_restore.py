"""Which state is restored, and which records of a changelog topic are read."""

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater.model.offset_metadata import OffsetMetadata
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.engine.stores.backend import BatchedState, MemoryBackend
from headwater_spark.worker import clients, restore
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader, RecordChunk
from headwater_spark.worker.restore import restore_state
from headwater_spark.worker.task_batch import OpenTask
from tests.runtime.record_chunks import chunk_of
from tests.runtime.worker.memory_broker import REUSED, Broker, batch_request, process

LINEAGE = "headwater.line"
CONNECTION = Connection(bootstrap_servers=("unused:9092",))


@attrs.frozen
class Session:
    """The part of a `TaskSession` that decides what is restored."""

    metadata: OffsetMetadata
    offsets: Mapping[TopicPartition, int] = attrs.field(factory=dict)


@attrs.define
class Restores:
    """Replaces the restore from changelog topics; remembers the version and the metadata it began with."""

    begun: list[tuple[int, dict[str, int]]] = attrs.field(factory=list)

    def __call__(self, _request: object, partition: int, state: BatchedState, session: object) -> int:
        assert partition == 0
        assert isinstance(session, Session)
        self.begun.append((state.version, dict(state.metadata)))
        return 7


@pytest.fixture
def restores(monkeypatch: pytest.MonkeyPatch) -> Restores:
    restores = Restores()
    monkeypatch.setattr(restore, "_restore_from_changelogs", restores)
    return restores


@attrs.frozen
class WithoutStores:
    """The part of a `BatchRequest` that decides what is restored; its program has no stores."""

    program: Any = attrs.field(
        factory=lambda: SimpleNamespace(stores=(), nodes=(), changelogs={}, source_changelogs={})
    )

    def task_name(self, task: int) -> str:
        return f"app-0-{task}"


def restored(state: BatchedState, metadata: OffsetMetadata) -> int:
    request: Any = WithoutStores()
    session: Any = Session(metadata)
    return restore_state(request, 0, state, session)


def state_of(version: int, lineage: int | None, *, is_next_prepared: bool = False) -> BatchedState:
    backend = MemoryBackend()
    state = BatchedState(backend)
    state.metadata.update({"clock": 10, **({} if lineage is None else {LINEAGE: lineage})})
    if version:
        state.store("s").put(b"key", b"old")
        state.commit(version - 1)
    if is_next_prepared:
        state.metadata["clock"] = 20
        state.store("s").put(b"key", b"new")
        state.prepare(version)
        state = BatchedState(backend)
    return state


@pytest.mark.parametrize(
    ("version", "is_next_prepared", "committed", "value"),
    [(3, False, 3, b"old"), (3, True, 3, b"old"), (3, True, 4, b"new")],
    ids=["the same", "prepared and not committed", "prepared and committed"],
)
def test_state_of_the_committed_version_is_not_restored(
    restores: Restores, version: int, committed: int, value: bytes, *, is_next_prepared: bool
) -> None:
    state = state_of(version, 5, is_next_prepared=is_next_prepared)
    assert restored(state, OffsetMetadata(committed, {LINEAGE: 5, "clock": 20})) == 0
    assert not restores.begun
    assert (state.version, state.store("s").get(b"key")) == (committed, value)


@pytest.mark.parametrize(
    ("version", "lineage", "begun"),
    [
        (3, 5, (3, {LINEAGE: 5, "clock": 10})),
        (9, 5, (0, {})),
        (6, 8, (0, {})),
        (6, None, (0, {})),
        (0, None, (0, {})),
    ],
    ids=["behind", "ahead", "another lineage", "no lineage", "new"],
)
def test_other_state_is_restored_from_what_can_be_trusted(
    restores: Restores, version: int, lineage: int | None, begun: tuple[int, dict[str, int]]
) -> None:
    state = state_of(version, lineage)
    clocks = {LINEAGE: 5, "clock": 30}
    assert restored(state, OffsetMetadata(6, clocks)) == 7
    assert restores.begun == [begun]
    assert (state.version, state.metadata) == (6, clocks)


@pytest.mark.parametrize("version", [0, 6])
def test_without_a_committed_lineage_a_new_one_begins(restores: Restores, version: int) -> None:
    """The offsets were deleted or reset: the state cannot be compared with them."""
    lineages = set()
    for _ in range(2):
        state = state_of(version, None)
        restored(state, OffsetMetadata(version))
        assert (state.version, set(state.metadata)) == (version, {LINEAGE})
        lineages.add(state.metadata[LINEAGE])
    assert restores.begun == [(0, {})] * 2
    assert len(lineages) == 2
    assert all(lineages)


@attrs.define
class Changelogs:
    """Replaces `PartitionReader`: chunks of records by topic, and what was read and known between them."""

    chunks: Mapping[str, Sequence[RecordChunk]]
    state: BatchedState
    is_open: bool | None = None
    """None: it was never opened."""
    ranges: list[tuple[str, int, OffsetRange]] = attrs.field(factory=list)
    seen: list[tuple[int, Mapping[str, int], int | None]] = attrs.field(factory=list)
    """(version, offsets, lineage) of the state after each chunk."""

    def __call__(self, connection: Connection, group: str) -> "Changelogs":
        assert (connection, group) == (CONNECTION, "counted")
        self.is_open = True
        return self

    def read(self, topic: str, partition: int, range_: OffsetRange) -> Iterator[RecordChunk]:
        self.ranges.append((topic, partition, range_))
        for chunk in self.chunks[topic]:
            yield chunk
            offsets = dict(self.state.offsets())
            self.seen.append((self.state.version, offsets, self.state.metadata.get(LINEAGE)))

    def close(self) -> None:
        self.is_open = False


CHANGELOG = "counted-counts-changelog"


def written_counts(broker: Broker, request: BatchRequest) -> list[InputRecord]:
    """Return the records of the changelog topic after a batch of three records."""
    process(OpenTask(request, 0), request, 0, 1, 2)
    return [
        (CHANGELOG, 0, number, time, key, value, ())
        for number, (topic, _, key, value, time, _) in enumerate(broker.records)
        if topic == CHANGELOG
    ]


@pytest.mark.parametrize(("known", "lineage"), [(None, None), (30, 5)])
def test_state_is_restored_chunk_by_chunk(
    broker: Broker,
    request_: BatchRequest,
    monkeypatch: pytest.MonkeyPatch,
    known: int | None,
    lineage: int | None,
) -> None:
    """A restore that is killed is continued after its last chunk, if the state still is of the lineage."""
    with monkeypatch.context() as patched:
        patched.setattr(restore, "_restore_from_changelogs", broker.read_changelogs)
        records = written_counts(broker, request_)
    monkeypatch.undo()
    state = MemoryState()
    if known is not None:
        state.commit(1, {CHANGELOG: known})
    chunks = [chunk_of(records[:2], 42), chunk_of(records[2:], 43), chunk_of((), 44)]
    changelogs = Changelogs({CHANGELOG: chunks}, state)
    monkeypatch.setattr(restore, "PartitionReader", changelogs)
    clocks = {} if lineage is None else {LINEAGE: lineage}
    session: Any = Session(OffsetMetadata(9, clocks))
    assert restore._restore_from_changelogs(request_, 0, state, session) == 3
    assert changelogs.ranges == [(CHANGELOG, 0, OffsetRange(known or 0))]
    version = 0 if known is None else 2
    assert changelogs.seen == [(version, {CHANGELOG: offset}, lineage) for offset in (42, 43, 44)]
    assert changelogs.is_open is False
    [(_, value)] = state.store("counts").range()
    assert int.from_bytes(value[-8:], "big") == 3


def test_a_source_topic_is_restored_up_to_the_committed_offset(
    request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records after it are input that has not been processed."""
    request = batch_request(REUSED, request_.state_folder, group="counted")
    for offsets, known, range_ in (
        ({("in", 0): 7, ("in", 1): 9}, {"in": 3}, OffsetRange(3, 7)),
        ({}, {}, OffsetRange(0, 0)),
    ):
        state = MemoryState()
        state.commit(-1, known)
        changelogs = Changelogs({"in": [chunk_of((), 7)]}, state)
        monkeypatch.setattr(restore, "PartitionReader", changelogs)
        session: Any = Session(OffsetMetadata(), offsets)
        assert restore._restore_from_changelogs(request, 0, state, session) == 0
        assert changelogs.ranges == [("in", 0, range_)]


def test_a_task_without_changelogs_reads_none(
    request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelogs = Changelogs({}, MemoryState())
    monkeypatch.setattr(restore, "PartitionReader", changelogs)
    plain = attrs.evolve(request_.program, changelogs={}, source_changelogs={})
    request = attrs.evolve(request_, program=plain)
    session: Any = Session(OffsetMetadata())
    assert restore._restore_from_changelogs(request, 0, MemoryState(), session) == 0
    assert changelogs.is_open is None


def message(at: int, code: int | None = None) -> Message:
    """Return a consumed record, or with a code an event of the client library."""
    error = None if code is None else KafkaError(code)
    text: Any = "text"  # the stubs of `value()` allow it, too
    time = (1, 1_000 + at)
    return Message(
        topic="changelog", partition=2, offset=at, key=b"k", value=text, timestamp=time, error=error
    )


@attrs.define
class FakeConsumer:
    """A partition with offsets from `low` to `high`; `consume` returns `answers` one after the other."""

    low: int
    high: int
    answers: Iterator[Sequence[Message]]
    assigned: list[int] = attrs.field(factory=list)
    is_closed: bool = False

    def get_watermark_offsets(self, partition: KafkaTopicPartition, _: float) -> tuple[int, int]:
        assert (partition.topic, partition.partition) == ("changelog", 2)
        return self.low, self.high

    def assign(self, partitions: list[KafkaTopicPartition]) -> None:
        self.assigned += [each.offset for each in partitions]

    def consume(self, _: int, timeout: float) -> Sequence[Message]:
        assert timeout > 0
        return next(self.answers)

    def close(self) -> None:
        self.is_closed = True


END_OF_PARTITION = KafkaError._PARTITION_EOF


def read(
    monkeypatch: pytest.MonkeyPatch, range_: OffsetRange, *answers: Sequence[Message], low: int = 3
) -> tuple[list[RecordChunk], FakeConsumer]:
    consumer = FakeConsumer(low, 10, iter(answers))

    def open_consumer(connection: Connection, group: str, settings: dict[str, object]) -> FakeConsumer:
        assert (connection, group) == (CONNECTION, "app")
        assert settings["enable.partition.eof"] is True, "the end of a partition is an event"
        return consumer

    monkeypatch.setattr(clients, "create_consumer", open_consumer)
    reader = PartitionReader(CONNECTION, "app")
    chunks = list(reader.read("changelog", 2, range_))
    reader.close()
    assert consumer.is_closed
    return chunks, consumer


def offsets(chunks: Sequence[RecordChunk]) -> list[tuple[list[int], int]]:
    return [([record[2] for record in chunk.records], chunk.next_offset) for chunk in chunks]


def test_a_range_is_read_from_its_first_record_that_still_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[Message]] = [
        [message(3), message(5)],
        [],
        [message(8), message(10, END_OF_PARTITION)],
    ]
    chunks, consumer = read(monkeypatch, OffsetRange(), *answers)
    assert consumer.assigned == [3]
    assert offsets(chunks) == [([3, 5, 8], 10), ([], 10)]
    assert chunks[0].records[0] == ("changelog", 2, 3, 1_003, b"k", b"text", ())


def test_the_first_record_has_offset_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks, consumer = read(monkeypatch, OffsetRange(0, 2), [message(0)], [message(1)], low=0)
    assert consumer.assigned == [0]
    assert offsets(chunks) == [([0, 1], 2), ([], 2)]


def test_a_range_ends_before_records_that_are_not_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks, consumer = read(monkeypatch, OffsetRange(4, 7), [message(4), message(6), message(7), message(9)])
    assert consumer.assigned == [4]
    assert offsets(chunks) == [([4, 6], 7), ([], 7)]


def test_records_that_are_written_during_a_read_are_left_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end is 10 when the read begins; then another process writes two records."""
    written = [message(each) for each in range(3, 12)]
    chunks, _ = read(monkeypatch, OffsetRange(), written)
    assert offsets(chunks) == [([3, 4, 5, 6, 7, 8, 9], 10), ([], 10)]


@pytest.mark.parametrize("range_", [OffsetRange(10), OffsetRange(5, 5), OffsetRange(0, 2), OffsetRange(12)])
def test_an_empty_range_is_not_read(monkeypatch: pytest.MonkeyPatch, range_: OffsetRange) -> None:
    chunks, consumer = read(monkeypatch, range_)
    assert not consumer.assigned
    assert offsets(chunks) == [([], max(3, range_.start))]


def test_an_error_of_the_partition_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException) as raised:
        read(monkeypatch, OffsetRange(), [message(3), message(0, KafkaError.TOPIC_AUTHORIZATION_FAILED)])
    assert raised.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
