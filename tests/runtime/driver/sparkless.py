"""An application on a real broker whose tasks run in this process, without Spark."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import attrs

from headwater.compiler import compile_document
from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import RecordInput
from tests.runtime.spark.kafka_topics import Topics

_COMMIT_SECONDS = 60.0
_INITIAL = 2
"""The partitions and processors at first."""
SINKS = ("counted", "regions", "closed")
_DOCUMENT = """
application:
  id: APP
  processors: PROCESSORS
  config:
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
topology:
  - stream: {topic: orders-APP, serdes: {key: string, value: string}, as: orders}
  - groupByKey: {as: by-key}
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted-APP, serdes: {key: string, value: long}}
WINDOWS  - selectKey: {from: orders, key: "substring(value, 1, 2)"}
  - groupByKey:
  - count: {materialized: regions}
  - toStream:
  - to: {topic: regions-APP, serdes: {key: string, value: long}}
"""
_WINDOWS = """\
  - windowedBy: {from: by-key, tumbling: {size: 10ms, grace: 0s}}
  - count: {materialized: windows}
  - suppress: {until: windowCloses, name: closed}
  - toStream:
  - to: {topic: closed-APP, serdes: {value: long}}
"""
_STORES = {"counts": 0, "regions": 0, "windows": 12, "closed-store": 8}
"""Store → how many bytes of its keys follow the key of the record."""


@attrs.define
class Sparkless:
    """Counts orders by key, by region and by window.

    `start_ms` is the time of the first record: of old ones, brokers delete the windows in changelog topics.
    """

    servers: str
    id: str
    folder: Path
    topics: Topics
    produced: list[tuple[bytes, bytes]] = attrs.field(factory=list)
    start_ms: int = attrs.field(factory=lambda: time.time_ns() // 10_000_000 * 10)
    restored: dict[tuple[str, int], int] = attrs.field(factory=dict)
    """(Sub-topology, task) → how many records it restored for its last batch."""
    has_windows: bool = True
    """Without windows, entries of moved keys are deleted later."""
    _round: int = 0

    @property
    def connection(self) -> Connection:
        return Connection(bootstrap_servers=(self.servers,))

    def set_up(self, partitions: int) -> None:
        self.topics.create({f"{name}-{self.id}": partitions for name in ("orders", *SINKS)})

    def text(self, processors: int) -> str:
        text = _DOCUMENT.replace("WINDOWS", _WINDOWS if self.has_windows else "")
        return text.replace("APP", self.id).replace("PROCESSORS", str(processors))

    def document(self, processors: int) -> TopologyDocument:
        loaded = load_text(self.text(processors), "app.yaml")
        assert not loaded.problems, loaded.problems
        return loaded.documents[0]

    def produce(self, rounds: int, keys: int = 12) -> None:
        rows = [
            (f"k{each}".encode(), f"r{each % 5}|{number}".encode(), self.start_ms + number)
            for number in range(self._round, self._round + rounds)
            for each in range(keys)
        ]
        self._round += rounds
        self.topics.put_by_key(f"orders-{self.id}", rows)
        self.produced += [(key, value) for key, value, _ in rows]

    def expand(self, partitions: int) -> None:
        """Add partitions as `pulumi up` does with the internal ones."""
        for topic in ("orders", *SINKS):
            self.topics.expand(f"{topic}-{self.id}", partitions)
        self.topics.expand(f"{self.id}-regions-repartition", partitions)

    def with_added_partitions(self) -> "Sparkless":
        """Set it up with 2 processors and 4 partitions, of which all have processed records."""
        self.set_up(_INITIAL)
        self.produce(10)
        self.process(2)
        self.expand(4)
        self.produce(13)
        self.process(2)
        return self

    def process(self, processors: int) -> None:
        """Process all records, each task in a session of its own."""
        document = self.document(processors)
        check = ApplicationTopics(document, self.connection).prepare()
        for program in check_runnable(document).programs(check.compiled):  # upstream ones come first
            records = [record for topic in program.sources for record in self.records(topic)]
            request = self._request(program.with_counts(check.partition_counts), processors)
            for task in range(request.tasks):
                mine = set(request.input_partitions(task))
                self._process_task(request, task, [record for record in records if record[:2] in mine])

    def open(self, processors: int) -> None:
        """Open a task, as a client that runs does; raises what prevents it."""
        document = self.document(processors)
        counts = {f"orders-{self.id}": self.topics.partitions(f"orders-{self.id}")}
        compiled = compile_document(document, counts)
        (program, *_) = check_runnable(document).programs(compiled)
        OpenTask(self._request(program, processors), 0).close()

    def _request(self, program: SubtopologyProgram, processors: int) -> BatchRequest:
        return BatchRequest(
            application=self.id,
            group=self.id,
            connection=self.connection,
            program=program,
            state_folder=self.folder / "state",
            partition_counts={topic: self.topics.partitions(topic) for topic in program.sources},
            processors=self._processors(processors) if program.stores else None,
        )

    def _processors(self, count: int) -> Processors:
        changelogs = self.topics.partitions(f"{self.id}-counts-changelog")
        return Processors.from_count(count, _INITIAL, is_recorded=changelogs != count)

    def _process_task(self, request: BatchRequest, task: int, records: Sequence[InputRecord]) -> None:
        opened = OpenTask(request, task)
        try:
            if records:
                result = opened.process_batch(request, RecordInput(records), tick=False)
                self.restored[request.subtopology, task] = result.restored
        finally:
            opened.close()

    def records(self, topic: str) -> Sequence[InputRecord]:
        """Return all committed records, when the partitions show them; faster than `Topics.get`."""
        assert until(lambda: self.topics.is_settled(topic), _COMMIT_SECONDS)
        with closing(PartitionReader(self.connection, self.id)) as reader:
            return [
                record
                for partition in range(self.topics.partitions(topic))
                for chunk in reader.read(topic, partition, OffsetRange())
                for record in chunk.records
            ]

    def results(self, sink: str) -> Mapping[bytes, Sequence[int]]:
        """Return key → results in ascending order."""
        found: dict[bytes, list[int]] = defaultdict(list)
        for record in self.records(f"{sink}-{self.id}"):
            found[record[4] or b""].append(int.from_bytes(record[5] or b"", "big"))
        return {key: sorted(values) for key, values in found.items()}

    def entries(self, store: str) -> Sequence[Mapping[bytes, bytes]]:
        """Return the entries that a restore finds, for each partition of a changelog topic."""
        topic = f"{self.id}-{store}-changelog"
        found: list[dict[bytes, bytes]] = [{} for _ in range(self.topics.partitions(topic))]
        for _, partition, _, _, key, value, _ in self.records(topic):
            found[partition].pop(key or b"", None)
            if value is not None:
                found[partition][key or b""] = value
        return found

    def check_moved(self, processors: int) -> None:
        """Check the entries of all stores, process more records and check the results."""
        if self.has_windows:
            self._check_entries(processors)
        self.produce(27)
        self.process(processors)
        self._check_entries(processors)
        self.check_results(40)

    def check_partitions_can_be_added(self, processors: int) -> None:
        """Double the input partitions after `check_moved`, process more records and check the results."""
        self.expand(2 * self.topics.partitions(f"orders-{self.id}"))
        self.produce(3)
        self.process(processors)
        self.check_results(40)

    def _check_entries(self, processors: int) -> None:
        """Check that each entry is with the processor of its key.

        Not each processor has a region: without records, it deletes nothing later.
        """
        owners = Processors.from_count(processors, _INITIAL)
        for store in list(_STORES) if self.has_windows else ["counts"]:
            for processor, entries in enumerate(self.entries(store)):
                keys = {key[: len(key) - _STORES[store]] for key in entries}
                assert {owners.owner_of_key(key) for key in keys} <= {processor}, store

    def check_results(self, closed_rounds: int) -> None:
        """Check all results; windows of the first `closed_rounds` rounds are closed for all keys."""
        for sink, key_of in (("counted", lambda key, _: key), ("regions", lambda _, value: value[:2])):
            expected: dict[bytes, int] = defaultdict(int)
            for key, value in self.produced:
                expected[key_of(key, value)] += 1
            assert self.results(sink) == {
                key: list(range(1, count + 1)) for key, count in expected.items()
            }, sink
        if not self.has_windows:
            return
        closed = self.results("closed")
        for key in {key for key, _ in self.produced}:
            for start in range(0, closed_rounds, 10):
                window = key + (self.start_ms + start).to_bytes(8, "big")
                assert closed[window] == [10], (key, start)
