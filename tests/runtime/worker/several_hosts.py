"""Hosts that share a broker, but no disk, and the driver that sends them the batches of one task."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.offset_metadata import StateVersion
from headwater.spec import load_text
from headwater_spark.engine.columns import Columns
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.worker import clients, state_proof
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_input import ColumnInput, RecordInput, TaskInput
from headwater_spark.worker.task_owner import TaskOwner
from tests.runtime.partition_columns import column_input
from tests.runtime.spark.kafka_topics import Topics

KEYS = 5
_ROWS = 7
"""Records of an Arrow batch."""
_SEQUENCE = bytes(4)
"""The end of a window's key in the changelog topic, not in the output."""
_DOCUMENT = """
application: {id: ID, config: {statestore.cache.max.bytes: 0}}
topology:
  - stream: {topic: in-ID, serdes: {key: string, value: string}}
"""
COUNTED = """
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out-ID, serdes: {key: string, value: long}}
"""
WINDOW_MS, ADVANCE_MS = 20, 10
COUNTED_IN_WINDOWS = f"""
  - groupByKey:
  - windowedBy: {{hopping: {{size: {WINDOW_MS}ms, advance: {ADVANCE_MS}ms, grace: 1h}}}}
  - count: {{materialized: counts}}
  - toStream:
  - to: {{topic: out-ID, serdes: {{key: time-windowed, value: long}}}}
"""
PASSED = "  - to: {topic: out-ID}\n"


def task_request(
    bootstrap: str, id_: str, folder: Path, topology: str, *, exactly_once: bool
) -> BatchRequest:
    """Return the request for the only task of an application, without what differs between batches."""
    text = (_DOCUMENT + topology).replace("ID", id_)
    (document,) = load_text(text, "test.yaml").documents
    compiled = compile_document(document, {f"in-{id_}": 1, f"out-{id_}": 1})
    (program,) = build_programs(document, build_nodes(document), compiled)
    return BatchRequest(
        application=id_,
        group=id_,
        connection=Connection(bootstrap_servers=(bootstrap,)),
        program=program.with_counts({f"out-{id_}": 1}),
        state_folder=folder,
        partition_counts={f"in-{id_}": 1},
        exactly_once=exactly_once,
    )


def input_records(topic: str, first: int, end: int) -> list[InputRecord]:
    """Return records of `KEYS` keys by turns."""
    return [
        (topic, 0, offset, 1_700_000_000_000 + offset, b"%d" % (offset % KEYS), b"v", ())
        for offset in range(first, end)
    ]


@attrs.frozen
class ObservedInput(RecordInput):
    """Input that calls a function when the task begins to process it, for the first time."""

    calls: list[Callable[[], object]] = attrs.field(factory=list)

    def records(self) -> list[InputRecord]:
        while self.calls:
            self.calls.pop()()
        return list(self.each)

    def starting_at(self, offsets: object) -> "ObservedInput":
        found = RecordInput(self.each).starting_at(offsets)  # type: ignore[arg-type]
        return ObservedInput(found.each, self.calls)

    def __reduce__(self) -> tuple[object, ...]:
        """Call nothing in another process."""
        return RecordInput, (self.each,)


@attrs.define
class ObservedColumns(ColumnInput):
    """The same in columns."""

    calls: list[Callable[[], object]] = attrs.field(factory=list)

    def columns(self) -> Iterator[Columns]:
        while self.calls:
            self.calls.pop()()
        return super().columns()

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> TaskInput:
        found = super().starting_at(offsets)
        if isinstance(found, ColumnInput):
            return ObservedColumns(found.topic_partition, found.batches, calls=self.calls)
        return found


@attrs.define
class Clock:
    """The clock of all hosts; it can be advanced."""

    ahead: float = 0.0

    @contextmanager
    def used(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Clock"]:
        real = state_proof.boot_seconds
        with monkeypatch.context() as patched:
            patched.setattr(state_proof, "boot_seconds", lambda: real() + self.ahead)
            yield self


@attrs.define
class Hosts:
    """The hosts, and what the driver knows of the task: its `version`, None = nothing."""

    topics: Topics
    request: BatchRequest
    folder: Path
    owners: dict[tuple[int, int], TaskOwner] = attrs.field(factory=dict)
    """(host, process) → the tasks of the process."""
    process_number: int = 0
    """The number of the process that gets the next batch on its host; another one may own the task there."""
    version: StateVersion | None = None
    in_columns: bool = False
    """Whether batches are columns, not single records."""

    @property
    def source(self) -> str:
        return f"in-{self.request.application}"

    @property
    def sink(self) -> str:
        return f"out-{self.request.application}"

    @property
    def changelog(self) -> str:
        return f"{self.request.application}-counts-changelog"

    def create_topics(self) -> None:
        self.topics.create(dict.fromkeys((self.source, self.sink, self.changelog), 1))

    def process(
        self,
        host: int,
        first: int,
        end: int,
        *calls: Callable[[], object],
        version: StateVersion | None = None,
    ) -> BatchResult:
        """Process a batch on a host; call `calls` when it begins. `version` is what the driver passes."""
        request = attrs.evolve(
            self.request,
            state_folder=self.folder / f"host-{host}",
            versions={} if version is None else {0: version},
            versions_at=state_proof.boot_seconds(),
        )
        input_ = self._input(first, end, list(calls))
        owner = self.owners.setdefault((host, self.process_number), TaskOwner())
        return owner.process_or_forward(request, 0, input_, tick=False)

    def _input(self, first: int, end: int, calls: list[Callable[[], object]]) -> TaskInput:
        records = input_records(self.source, first, end)
        if not (self.in_columns and records):
            return ObservedInput(records, calls)
        columns = column_input(records, _ROWS)
        return ObservedColumns(columns.topic_partition, columns.batches, calls=calls)

    def run_batch(self, host: int, first: int, end: int) -> BatchResult:
        """Process a batch as the driver does: it passes the version that it knows, and keeps the new one."""
        known, self.version = self.version, None
        result = self.process(host, first, end, version=known)
        self.version = result.state_version
        return result

    def restart(self, host: int, *, loses_disk: bool = False) -> None:
        """End the processes of a host."""
        for process in [each for each in self.owners if each[0] == host]:
            self.owners.pop(process).close()
        if loses_disk:
            shutil.rmtree(self.folder / f"host-{host}", ignore_errors=True)

    def close(self) -> None:
        for host in {host for host, _ in self.owners}:
            self.restart(host)

    def committed(self) -> int:
        """Return the committed offset of the source."""
        reader = clients.create_consumer(self.request.connection, self.request.group)
        try:
            (found,) = clients.read_committed(reader, [(self.source, 0)])
        finally:
            reader.close()
        return found.offset

    def counts(self, topic: str) -> dict[bytes, list[int]]:
        """Return key → the counts in a topic."""
        found: dict[bytes, list[int]] = {}
        for _, _, _, _, key, value, _ in self.topics.get(topic):
            # The changelog of a timestamped store has the timestamp in a header, not in the value.
            found.setdefault(key or b"", []).append(int.from_bytes(value or b"", "big"))
        return found

    def check_counts(self, fed: int) -> None:
        """Check that each record was counted once, in the output and in the changelog topic."""
        expected = {
            b"%d" % key: list(range(1, len(range(key, fed, KEYS)) + 1)) for key in range(min(KEYS, fed))
        }
        assert self.counts(self.sink) == expected
        assert self.counts(self.changelog) == expected

    def check_windows(self, fed: int) -> None:
        """Check that each record was counted once in each of its windows, in both topics."""
        expected: dict[bytes, list[int]] = {}
        for _, _, _, time, key, _, _ in input_records(self.source, 0, fed):
            last = time // ADVANCE_MS * ADVANCE_MS
            for start in range(last - WINDOW_MS + ADVANCE_MS, last + 1, ADVANCE_MS):
                counts = expected.setdefault((key or b"") + start.to_bytes(8, "big"), [])
                counts.append(len(counts) + 1)
        assert self.counts(self.sink) == expected
        assert self.counts(self.changelog) == {key + _SEQUENCE: each for key, each in expected.items()}
