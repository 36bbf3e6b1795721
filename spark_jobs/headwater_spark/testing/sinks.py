"""The topics that an application writes, and the formats in which `TopologyTestDriver` reads them."""

from collections.abc import Iterable
from typing import Self

import attrs

from headwater.model.behaviors import Format
from headwater.model.nodes import SinkNode
from headwater_spark.driver.preflight import RunnableDocument
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.processors import Record


@attrs.frozen
class Sinks:
    """The topics that an application writes, and the formats of their records.

    Attributes:
        sinks: The sinks of topics of users, each with its program and its topic; None = chosen by record.
        bytes_topics: Internal topics, and the dead letter topic.
    """

    sinks: tuple[tuple[SubtopologyProgram, SinkNode, str | None], ...]
    bytes_topics: frozenset[str]

    @classmethod
    def of(
        cls,
        programs: Iterable[SubtopologyProgram],
        runnable: RunnableDocument,
        dead_letters: str | None,
    ) -> Self:
        repartition = {topic.name for topic in runnable.nodes.repartition_topics}
        programs = tuple(programs)
        sinks = [
            (program, node, program.topic(node.name))
            for program in programs
            for node in program.nodes
            if isinstance(node, SinkNode)
        ]
        changelogs = {topic for program in programs for topic in program.changelogs.values()}
        internal = {topic for _, node, topic in sinks if topic is not None and node.topic in repartition}
        others = set() if dead_letters is None else {dead_letters}
        users = tuple(each for each in sinks if each[1].topic not in repartition)
        return cls(users, frozenset(changelogs | internal | others))

    def check(self, topic: str) -> None:
        """Raise KeyError if the application never writes the topic."""
        written = {topic for _, _, topic in self.sinks}
        if None not in written and topic not in written | self.bytes_topics:
            topics = self.bytes_topics | {each for each in written if each is not None}
            raise KeyError(f"the topology does not write {topic}; {listed('it writes', topics)}")

    def to_record(self, record: OutputRecord) -> Record:
        topic, _, key, value, timestamp, headers = record
        serdes = self._serdes(topic)
        if serdes is None:
            return Record(key, value, timestamp, headers)
        read_key, read_value = serdes[0].deserialize, serdes[1].deserialize
        return Record(
            None if key is None else read_key(key),
            None if value is None else read_value(value),
            timestamp,
            headers,
        )

    def _serdes(self, topic: str) -> tuple[Serde, Serde] | None:
        """Return the serdes of a topic's records; None = they are bytes."""
        if topic in self.bytes_topics:
            return None
        found = [each for each in self.sinks if each[2] == topic]
        found = found or [each for each in self.sinks if each[2] is None]
        if len({_formats(program, sink) for program, sink, _ in found}) != 1:
            return None
        program, sink, _ = found[0]
        return serdes_of(sink.writes, program)


def _formats(program: SubtopologyProgram, sink: SinkNode) -> tuple[Format, Format]:
    written = None if sink.writes is None else sink.writes.format
    key, value = (None, None) if written is None else (written.key, written.value)
    return program.defaults.resolve(key, "key"), program.defaults.resolve(value, "value")


def listed(what: str, names: Iterable[str]) -> str:
    return f"{what}: {', '.join(sorted(names)) or 'none'}"
