"""Topics that move from one application of the stack to another, without a change on the cluster.

A managed sink belongs to the application that declares it. When its declaration moves to another document, or
its application gets another id, only the record moves. An internal topic never moves: it holds the data of
its application.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Lifecycle


@attrs.frozen
class Transfer:
    """A managed sink as `former`, an application, recorded it; `owner` declares it now."""

    recorded: RecordedTopic
    former: str
    owner: str


@attrs.frozen
class Transfers:
    """The sinks that move, by topic, and the records of the stack without them.

    A sink that several records contain after an interrupted run stays in one of them. A topic that no longer
    exists, and whose name another application declares, is removed from the record, too.
    """

    sinks: Mapping[str, Transfer]
    records: Mapping[str, SetupRecord]

    @classmethod
    def from_records(
        cls,
        compiled: Sequence[CompiledApplication],
        records: Mapping[str, SetupRecord],
        snapshot: ClusterSnapshot,
    ) -> "Transfers":
        """Return what moves between the applications that `records` describe and those that are active."""
        declared = _declared_sinks(compiled)
        sinks = {name for each in _active_applications(compiled) for name in _sinks_of(each)}
        recorded = _recorded_sinks(records.values())
        moving: dict[str, Transfer] = {}
        remaining: dict[str, SetupRecord] = {}
        for id_, record in records.items():
            left = {}
            for name, topic in record.topics.items():
                owners = declared.get(name, ())
                is_first = recorded.get(name, id_) == id_
                if not owners:
                    stays = is_first
                elif len(owners) > 1 or id_ in owners:
                    stays = True
                elif topic.is_sink and name in sinks:
                    stays = False
                    if is_first:
                        moving[name] = Transfer(topic, id_, owners[0])
                else:
                    stays = name in snapshot.topics
                if stays:
                    left[name] = topic
            remaining[id_] = attrs.evolve(record, topics=left)
        return cls(moving, remaining)

    def moving_to(self, owner: str) -> Mapping[str, Transfer]:
        """Return the sinks that move to `owner`, by topic."""
        return {name: transfer for name, transfer in self.sinks.items() if transfer.owner == owner}

    def describe_moves_from(self, former: str) -> Iterator[str]:
        """Yield what moves away from an application."""
        for name, transfer in sorted(self.sinks.items()):
            if transfer.former == former:
                yield f"sink {name} moves to {transfer.owner}"


def _active_applications(compiled: Sequence[CompiledApplication]) -> Iterator[CompiledApplication]:
    return (each for each in compiled if each.application.lifecycle is Lifecycle.ACTIVE)


def _declared_sinks(compiled: Sequence[CompiledApplication]) -> Mapping[str, Sequence[str]]:
    """Return topic → ids of the active applications that declare it."""
    declared: defaultdict[str, list[str]] = defaultdict(list)
    for each in _active_applications(compiled):
        for name in (*(topic.name for topic in each.internal_topics), *_sinks_of(each)):
            declared[name].append(each.application.id)
    return declared


def _recorded_sinks(records: Iterable[SetupRecord]) -> Mapping[str, str]:
    """Return topic → the application that recorded it as a sink, preferably with the topic's id."""
    found: dict[str, tuple[bool, str]] = {}
    for record in records:
        for name, topic in record.topics.items():
            if topic.is_sink:
                candidate = (not topic.topic_id, record.application_id)
                found[name] = min(found.get(name, candidate), candidate)
    return {name: id_ for name, (_, id_) in found.items()}


def _sinks_of(compiled: CompiledApplication) -> Iterator[str]:
    """Yield the managed sinks whose count is decided: only those are registered."""
    return (sink.topic for sink in compiled.sinks if sink.partitions)
