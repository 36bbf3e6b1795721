"""Random topologies on the real runtime: how they are fed, under which circumstances, and what came out."""

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

from infra.model.compiled import CompiledApplication
from infra.model.topology import TopologyDocument
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.driver.application import StreamsApplication
from spark_jobs.runtime.driver.preflight import RunnableDocument, check_runnable
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.records import InputRecord, OutputRecord
from tests.runtime.engine.fuzzing.test_data import TextProgram
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import python_workers
from toolchain.broker.readiness import until

Json = dict[str, Any]
_TIMELESS = frozenset({
    "stream", "table", "globalTable", "mapValues", "filter", "filterNot", "peek", "selectKey", "map",
    "flatMap", "flatMapValues", "merge", "repartition", "split", "toTable", "groupByKey", "groupBy", "count",
    "reduce", "aggregate", "cogroup", "join", "leftJoin", "outerJoin", "toStream", "to",
})  # fmt: skip
"""Calls that ask for keys and values only, unless they have one of these:"""
_TIMES = ("window", "supplier")
_FIRST_MS = 100_000
_PATIENCE_SECONDS = 120.0


@attrs.frozen
class Circumstances:
    """`lost` is what is gone when the application is started again: workers, checkpoint, state."""

    guarantee: str
    partitions: int
    records_at_once: int
    stops: bool
    lost: frozenset[str]

    @classmethod
    def drawn(cls, chance: random.Random, document: Json, most_partitions: int) -> "Circumstances":
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
class Ways:
    """Which sub-topologies a record reaches, topic by topic."""

    readers: Mapping[str, str]
    written: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, programs: Sequence[SubtopologyProgram]) -> "Ways":
        readers = {topic: program.name for program in programs for topic in program.sources}
        return cls(
            readers,
            {program.name: frozenset(program.sinks.values()) & readers.keys() for program in programs},
        )

    def meets_itself(self, topic: str) -> bool:
        """A sub-topology gets what became of a record by several topics, whose order is left to chance."""
        return any(len(topics - {topic}) > 1 for topics in self._reached(topic).values())

    def is_tree(self, topic: str) -> bool:
        """No sub-topology sees anything of a record twice, so that any number may be on the way at once."""
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


def is_timeless(document: Json) -> bool:
    """Whether keys have nothing to do with each other, so that partitions cannot be told from the results."""
    for step in document["topology"]:
        ((call, options),) = step.items()
        if call not in _TIMELESS or any(f"'{word}" in str(options) for word in _TIMES):
            return False
    return True


def texts(programs: Iterable[SubtopologyProgram]) -> tuple[TextProgram, ...]:
    """The programs with the format of the Java helper."""
    fields = [field.name for field in attrs.fields(SubtopologyProgram)]
    return tuple(TextProgram(**{name: getattr(each, name) for name in fields}) for each in programs)


def at_possible_times(records: Sequence[Json]) -> list[Json]:
    """The same span of time where brokers take it: neither at its very beginning nor in the future."""
    shift = _FIRST_MS - min((record["timestamp"] for record in records), default=0)
    return [{**record, "timestamp": record["timestamp"] + shift} for record in records]


def in_stretches(records: Sequence[Json], size: int) -> list[Json]:
    """Every `size` records by topic, so that more of them may be on the way together."""
    parts = [records[at : at + size] for at in range(0, len(records), size)]
    return [record for part in parts for record in sorted(part, key=lambda each: str(each["topic"]))]


def runs(records: Sequence[Json], ways: Ways, *, singly: bool) -> list[list[Json]]:
    """Records that may be on the way together without being in a different order from one by one."""
    stretches = [list(run) for _, run in groupby(records, key=lambda each: str(each["topic"]))]
    return [
        part
        for run in stretches
        for part in ([[each] for each in run] if singly or not ways.is_tree(run[0]["topic"]) else [run])
    ]


def piped(record: Json, partitions: int) -> OutputRecord:
    """The record in the partition where Kafka's producers put it; keyless ones are spread."""
    key, value = (None if part is None else part.encode() for part in (record["key"], record["value"]))
    partition = record["timestamp"] % partitions if key is None else default_partition(key, partitions)
    headers = tuple((name, name.encode()) for name in record.get("headers", ()))
    return record["topic"], partition, key, value, record["timestamp"], headers


@attrs.frozen
class Rig:
    """Where applications run, one after the other: topics are deleted after each."""

    spark: SparkSession
    topics: Topics
    servers: str
    folder: Path
    unique: Callable[[str], str]

    @contextmanager
    def scene(
        self, document: Json, config: Mapping[str, str], sinks: Collection[str], circumstances: Circumstances
    ) -> Iterator["Scene"]:
        id_ = self.unique("app")
        given = {**document["application"].get("config", {}), **config}
        given["processing.guarantee"] = circumstances.guarantee
        application = {"id": id_, "config": given}
        loaded = load_text(json.dumps({**document, "application": application}), "fuzz.json")
        assert not loaded.problems, loaded.problems
        folder = self.folder / id_
        scene = Scene(self, check_runnable(loaded.documents[0]), circumstances, folder, tuple(sorted(sinks)))
        self.topics.create(dict.fromkeys([*scene.sources(), *sinks], circumstances.partitions))
        try:
            yield scene
        finally:
            scene.close()
            self.topics.delete_all()
            shutil.rmtree(folder, ignore_errors=True)


@attrs.define
class Scene:
    """One application, which may be stopped and started again."""

    rig: Rig
    runnable: RunnableDocument
    circumstances: Circumstances
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
        """How many records the application has read since it was started, internal ones included."""
        return (
            0
            if self.application is None
            else sum(part["recordsRead"] for part in self.application.subtopology_status())
        )

    def start(self) -> StreamsApplication:
        settings = RunSettings(
            connection=Connection(bootstrap_servers=(self.rig.servers,)),
            checkpoint=str(self.folder / "checkpoint"),
            state_folder=self.folder / "state",
            records_at_once=self.circumstances.records_at_once,
        )
        self.application = StreamsApplication(self.rig.spark, self.document, self.programs, settings)
        self.application.start()
        return self.application

    def start_again(self) -> StreamsApplication:
        """After the losses that the circumstances name; state is lost with the workers that have it open."""
        self.close()
        lost = self.circumstances.lost
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
        partitions = self.circumstances.partitions
        self.rig.topics.send(piped(record, partitions) for record in records)

    def outputs(self) -> Mapping[str, list[InputRecord]]:
        topics = self.rig.topics
        assert until(lambda: all(map(topics.is_settled, self.sinks)), _PATIENCE_SECONDS)
        return {topic: topics.get(topic) for topic in self.sinks}
