"""A broker in memory for the batches of a task, and requests for them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.offset_metadata import OffsetMetadata, decode_metadata, decode_positions, latest_metadata
from headwater.spec import load_text
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_session import TaskSession

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

REUSED = """
application: {id: reused, config: {topology.optimization: reuse.ktable.source.topics}}
topology:
  - table: {topic: in, materialized: kept, serdes: {key: string, value: string}}
  - toStream:
  - to: {topic: out, serdes: {key: string, value: string}}
"""


@attrs.define
class Broker:
    """Committed offsets with their metadata, and committed records; it is the producer of each session."""

    committed: dict[TopicPartition, tuple[int, str]] = attrs.field(factory=dict)
    records: list[OutputRecord] = attrs.field(factory=list)
    open_records: list[OutputRecord] = attrs.field(factory=list)
    opened: list[tuple[str, bool]] = attrs.field(factory=list)
    """(name of the task, whether each record is written by a request of its own) of each session."""
    changelog_end: int | None = None
    """The offset after the restored records of each changelog topic; None = there are none."""
    restores: int = 0
    commits: int = 0

    def session(self, request: BatchRequest, partition: int, *, single: bool = False) -> TaskSession:
        """Return what `open_session` returns for a task."""
        self.opened.append((request.task_name(partition), single))
        metadata = latest_metadata(text for _, text in self.committed.values()) or OffsetMetadata()
        offsets = {partition: offset for partition, (offset, _) in self.committed.items()}
        positions = {partition: decode_positions(text) for partition, (_, text) in self.committed.items()}
        return TaskSession(self, metadata, offsets, positions)

    def read_changelogs(self, request: BatchRequest, _: int, state: LocalState, __: object) -> int:
        """Restore nothing; the next read begins at `changelog_end`."""
        self.restores += 1
        program, end = request.program, self.changelog_end or 0
        topics = [*program.changelogs.values(), *program.source_changelogs.values()]
        state.commit(state.version - 1, dict.fromkeys(topics, end))
        return end

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
        found = decode_metadata(self.committed[IN][1])
        assert found is not None
        return found

    def counts(self) -> list[int]:
        return [int.from_bytes(record[3] or b"", "big") for record in self.records if record[0] == "out"]


def batch_request(text: str, state_folder: Path, **fields: Any) -> BatchRequest:  # noqa: ANN401 - its fields
    """Return a request for the only sub-topology of a document; its topics have one partition."""
    document = load_text(text, "document.yaml").documents[0]
    topics = {topic for source in build_nodes(document).nodes for topic in getattr(source, "topics", ())}
    compiled = compile_document(document, dict.fromkeys((*topics, "out"), 1))
    (program,) = build_programs(document, build_nodes(document), compiled)
    id_ = document.application.id
    known: dict[str, Any] = {
        "application": id_,
        "group": id_,
        "connection": Connection(bootstrap_servers=("unused:9092",)),
        "program": program,
        "state_folder": state_folder,
        "partition_counts": dict.fromkeys(sorted(topics), 1),
    }
    return BatchRequest(**(known | fields))


def record(offset: int) -> InputRecord:
    return (*IN, offset, 1_000 + offset, b"a", b"v", ())


def process(task: OpenTask, request: BatchRequest, *offsets: int, tick: bool = False) -> BatchResult:
    return task.process_batch(request, RecordInput([record(offset) for offset in offsets]), tick=tick)
