"""Random topologies on the real runtime: their input, the conditions of a run, and its output."""

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.compiled import CompiledApplication
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import RunnableDocument, check_runnable
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import InputRecord, OutputRecord
from tests.runtime.engine.fuzzing.test_data import TextProgram
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import python_workers

Json = dict[str, Any]
_TIME_INDEPENDENT = frozenset({
    "stream", "table", "globalTable", "mapValues", "filter", "filterNot", "peek", "selectKey", "map",
    "flatMap", "flatMapValues", "merge", "repartition", "split", "toTable", "groupByKey", "groupBy", "count",
    "reduce", "aggregate", "cogroup", "join", "leftJoin", "outerJoin", "toStream", "to",
})  # fmt: skip
"""Calls whose result depends on keys and values only, unless they have one of the options below."""
_TIME_OPTIONS = ("window", "supplier")
_FIRST_MS = 100_000
_TIMEOUT_SECONDS = 120.0


@attrs.frozen
class Conditions:
    """The conditions of a run. `lost` is deleted before a restart: workers, checkpoint, state."""

    guarantee: str
    partitions: int
    records_at_once: int
    stops: bool
    lost: frozenset[str]

    @classmethod
    def drawn(cls, chance: random.Random, document: Json, most_partitions: int) -> "Conditions":
        losses: list[tuple[str, ...]] = [(), ("workers",), ("checkpoint",)]
        if "'logging': False" not in str(document):
            losses += [("state",), ("checkpoint", "state")]
        lost = chance.choice(losses)
        return cls(
            guarantee=chance.choice(["exactly_once_v2", "at_least_once"]),
            partitions=chance.randint(1, most_partitions),
            records_at_once=chance.choice([3, 10, 30, 1000]),
            stops=chance.random() < 0.7,
            lost=frozenset(lost),
        )


@attrs.frozen
class Routes:
    """The sub-topologies that a record reaches, topic by topic."""

    readers: Mapping[str, str]
    written: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, programs: Sequence[SubtopologyProgram]) -> "Routes":
        readers = {topic: program.name for program in programs for topic in program.sources}
        return cls(
            readers,
            {program.name: frozenset(program.sinks.values()) & readers.keys() for program in programs},
        )

    def has_race(self, topic: str) -> bool:
        """Return whether a sub-topology gets results of one record from several topics, in any order."""
        return any(len(topics - {topic}) > 1 for topics in self._reached(topic).values())

    def is_tree(self, topic: str) -> bool:
        """Return whether each sub-topology gets results of a record once, so that many can be in flight."""
        return all(len(topics) == 1 for topics in self._reached(topic).values())

    def _reached(self, topic: str) -> Mapping[str, set[str]]:
        reached: dict[str, set[str]] = {}
        waiting, seen = [topic], {topic}
        while waiting:
            one = waiting.pop()
            reader = self.readers[one]
            reached.setdefault(reader, set()).add(one)
            more = self.written[reader] - seen
            seen |= more
            waiting += more
        return reached


def is_time_independent(document: Json) -> bool:
    """Return whether the results do not depend on time, so that they are the same for any partition count."""
    for step in document["topology"]:
        ((call, options),) = step.items()
        if call not in _TIME_INDEPENDENT or any(f"'{word}" in str(options) for word in _TIME_OPTIONS):
            return False
    return True


def texts(programs: Iterable[SubtopologyProgram]) -> tuple[TextProgram, ...]:
    """Return the programs with the text formats of the Java helper."""
    fields = [field.name for field in attrs.fields(SubtopologyProgram)]
    return tuple(TextProgram(**{name: getattr(each, name) for name in fields}) for each in programs)


def with_valid_times(records: Sequence[Json]) -> list[Json]:
    """Return the records with times that brokers accept: not close to 0, and not in the future."""
    shift = _FIRST_MS - min((record["timestamp"] for record in records), default=0)
    return [{**record, "timestamp": record["timestamp"] + shift} for record in records]


def sorted_in_chunks(records: Sequence[Json], size: int) -> list[Json]:
    """Return the records, each `size` of them sorted by topic, so that more can be in flight together."""
    chunks = [records[at : at + size] for at in range(0, len(records), size)]
    return [record for chunk in chunks for record in sorted(chunk, key=lambda each: str(each["topic"]))]


def groups(records: Sequence[Json], routes: Routes, *, singly: bool) -> list[list[Json]]:
    """Return groups of records; processing a group at once gives the same order as one by one."""
    by_topic = [list(run) for _, run in groupby(records, key=lambda each: str(each["topic"]))]
    return [
        part
        for run in by_topic
        for part in ([[each] for each in run] if singly or not routes.is_tree(run[0]["topic"]) else [run])
    ]


def output_record(record: Json, partitions: int) -> OutputRecord:
    """Return the record on the partition that Kafka's producers choose; keyless records are distributed."""
    key, value = (None if part is None else part.encode() for part in (record["key"], record["value"]))
    partition = record["timestamp"] % partitions if key is None else default_partition(key, partitions)
    headers = tuple((name, name.encode()) for name in record.get("headers", ()))
    return record["topic"], partition, key, value, record["timestamp"], headers


@attrs.frozen
class Runner:
    """Runs applications one after the other; deletes all topics after each."""

    spark: SparkSession
    topics: Topics
    servers: str
    folder: Path
    unique: Callable[[str], str]

    @contextmanager
    def application(
        self, document: Json, config: Mapping[str, str], sinks: Collection[str], conditions: Conditions
    ) -> Iterator["ApplicationRun"]:
        id_ = self.unique("app")
        config = {**document["application"].get("config", {}), **config}
        config["processing.guarantee"] = conditions.guarantee
        application = {"id": id_, "config": config}
        loaded = load_text(json.dumps({**document, "application": application}), "fuzz.json")
        assert not loaded.problems, loaded.problems
        folder = self.folder / id_
        run = ApplicationRun(
            self, check_runnable(loaded.documents[0]), conditions, folder, tuple(sorted(sinks))
        )
        self.topics.delete_all()  # a run that failed may have left some
        try:
            self.topics.create(dict.fromkeys([*run.sources(), *sinks], conditions.partitions))
            yield run
        finally:
            try:
                run.close()
            finally:
                self.topics.delete_all()
                shutil.rmtree(folder, ignore_errors=True)


@attrs.define
class ApplicationRun:
    """One application, which can be stopped and restarted."""

    runner: Runner
    runnable: RunnableDocument
    conditions: Conditions
    folder: Path
    sinks: tuple[str, ...]
    application: StreamsApplication | None = None

    @property
    def document(self) -> TopologyDocument:
        return self.runnable.document

    def sources(self) -> set[str]:
        return {topic for node in self.runnable.nodes.nodes for topic in getattr(node, "topics", ())} - {
            topic.name for topic in self.runnable.nodes.repartition_topics
        }

    def programs(self, compiled: CompiledApplication) -> tuple[SubtopologyProgram, ...]:
        return texts(self.runnable.programs(compiled))

    def read(self) -> int:
        """Return the number of records read since the start, those of internal topics included."""
        return (
            0
            if self.application is None
            else sum(part["recordsRead"] for part in self.application.subtopology_status())
        )

    def start(self) -> StreamsApplication:
        settings = RunSettings(
            connection=Connection(bootstrap_servers=(self.runner.servers,)),
            checkpoint=str(self.folder / "checkpoint"),
            state_folder=self.folder / "state",
            records_at_once=self.conditions.records_at_once,
        )
        self.application = StreamsApplication(self.runner.spark, self.document, self.programs, settings)
        self.application.start()
        return self.application

    def restart(self) -> StreamsApplication:
        """Restart after the losses of the conditions; kill the workers that have lost state open."""
        self.close()
        lost = self.conditions.lost
        if lost & {"workers", "state"}:
            for worker in python_workers(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        for name in lost & {"checkpoint", "state"}:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.start()

    def close(self) -> None:
        if self.application is not None:
            self.application.close()
            self.application = None

    def feed(self, records: Sequence[Json]) -> None:
        partitions = self.conditions.partitions
        self.runner.topics.send(output_record(record, partitions) for record in records)

    def outputs(self) -> Mapping[str, list[InputRecord]]:
        topics = self.runner.topics
        assert until(lambda: all(map(topics.is_settled, self.sinks)), _TIMEOUT_SECONDS)
        return {topic: topics.get(topic) for topic in self.sinks}
