"""Counts of repartition topics as the group leader's assignor decides them (facts 4.2).

`RepartitionTopics#setup` iterates over the sub-topologies until it makes no progress, in the order of a
`HashSet` of `TopicsInfo` objects whose hash codes depend on the application id. It gives each undecided topic
the largest count that is known *at that moment*, so counts may depend on that order. `count_by_assignor`
returns what Kafka Streams creates; `count_in_dependency_order` returns the counts if each topic waits for all
its inputs.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import attrs

from headwater.compiler.java.collections import (
    hash_order,
    long_hash,
    map_hash,
    objects_hash,
    set_hash,
    signed_int,
    string_hash,
)
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.nodes import ChangelogKind, StateStore

_JAVA_FALSE = 1237
_DELETE = {"cleanup.policy": "delete"}


@attrs.frozen
class TopicGraph:
    """The sub-topologies, by id, that read and write each topic.

    `known`: topic → count of external topics and of repartition topics with an explicit count. `missing`:
    external sources without a count. `read_by_name`: repartition topics that a source names in full: Kafka
    Streams requires that they exist, as of external sources. `writers` has only repartition topics; `writes`
    maps a sub-topology to the repartition topics without an explicit count that it writes.
    """

    groups: tuple[TopicGroup, ...]
    readers: Mapping[str, tuple[int, ...]]
    writers: Mapping[str, tuple[int, ...]]
    writes: Mapping[int, tuple[str, ...]]
    known: Mapping[str, int]
    missing: frozenset[str]
    read_by_name: frozenset[str]

    @classmethod
    def from_groups(
        cls,
        groups: Sequence[TopicGroup],
        external: Mapping[str, int],
        copartitioned: Iterable[frozenset[str]] = (),
    ) -> "TopicGraph":
        """Return the graph of `groups`; `external`: topic → partition count on the cluster.

        Topics in `copartitioned` that no sub-topology reads have a count, too: topics of global tables that a
        pattern matches.
        """
        counting = tuple(group for group in groups if group.sources and not group.is_global)
        internal = {topic: details for group in counting for topic, details in group.repartition.items()}
        known = {topic: details.partitions for topic, details in internal.items() if details.partitions}
        readers: dict[str, list[int]] = {}
        writers: dict[str, list[int]] = {topic: [] for topic in internal}
        for group in counting:
            for topic in group.sources:
                readers.setdefault(topic, []).append(group.id)
            for topic in group.sinks:
                if topic in writers:
                    writers[topic].append(group.id)
        by_name = {topic for group in counting for topic in group.sources if topic not in group.repartition}
        outside = by_name - internal.keys()
        unread = frozenset().union(*copartitioned) - by_name - internal.keys()
        readers.update((topic, []) for topic in unread)
        known.update((topic, external[topic]) for topic in outside | unread if external.get(topic, 0) > 0)
        return cls(
            groups=counting,
            readers={topic: tuple(ids) for topic, ids in readers.items()},
            writers={topic: tuple(ids) for topic, ids in writers.items()},
            writes={
                group.id: tuple(t for t in group.sinks if t in internal and t not in known)
                for group in counting
            },
            known=known,
            missing=frozenset(outside - known.keys()),
            read_by_name=frozenset(by_name & internal.keys()),
        )


def assignor_order(groups: Sequence[TopicGroup]) -> tuple[TopicGroup, ...]:
    """Return the groups in the order of the assignor's `HashSet<TopicsInfo>`.

    The objects are added by id and then copied to a second set.
    """
    by_id = {group.id: group for group in groups}
    codes = {group.id: _hash_code(group) for group in groups}
    once = hash_order(by_id, codes.__getitem__)
    return tuple(by_id[id_] for id_ in hash_order(once, codes.__getitem__))


def count_by_assignor(topic_graph: TopicGraph, order: Sequence[TopicGroup]) -> dict[str, int]:
    """Return topic → count of the external and repartition topics that the assignor decides in this `order`.

    A priority queue of (pass, position) contains the undecided topics with a known input. Its order is that
    of the assignor's repeated passes, in linear time.

    Source: `RepartitionTopics#setRepartitionSourceTopicPartitionCount`.
    """
    counts: dict[str, int] = {}
    sequence = [topic for group in order for topic in group.repartition]
    position = {topic: index for index, topic in enumerate(sequence)}
    peak: dict[int, int] = {}
    queue: list[tuple[int, int]] = []
    waiting = {topic for topic in sequence if topic not in topic_graph.known}

    def decide(topic: str, count: int, turn: int, here: int) -> None:
        counts[topic] = count
        for group in topic_graph.readers[topic]:
            if group not in peak:
                for written in waiting.intersection(topic_graph.writes[group]):
                    waiting.discard(written)
                    heapq.heappush(queue, (turn + (position[written] <= here), position[written]))
            peak[group] = max(count, peak.get(group, 0))

    for topic, count in topic_graph.known.items():
        decide(topic, count, 0, -1)
    while queue:
        turn, here = heapq.heappop(queue)
        topic = sequence[here]
        decide(topic, max(peak[group] for group in topic_graph.writers[topic] if group in peak), turn, here)
    return counts


def count_in_dependency_order(topic_graph: TopicGraph) -> dict[str, int]:
    """Return topic → count if each topic waits until all inputs of its writers are decided.

    Topics in a cycle or downstream of a missing source are omitted.
    """
    counts: dict[str, int] = {}
    undecided_sources = {group.id: len(group.sources) for group in topic_graph.groups}
    undecided_writers = {topic: len(groups) for topic, groups in topic_graph.writers.items()}
    peak: dict[int, int] = {}
    ready = deque(topic_graph.known.items())
    while ready:
        topic, count = ready.popleft()
        counts[topic] = count
        for group in topic_graph.readers[topic]:
            peak[group] = max(count, peak.get(group, 0))
            undecided_sources[group] -= 1
            if undecided_sources[group]:
                continue
            for written in topic_graph.writes[group]:
                undecided_writers[written] -= 1
                if not undecided_writers[written]:
                    ready.append((written, max(peak[writer] for writer in topic_graph.writers[written])))
    return counts


def _hash_code(group: TopicGroup) -> int:
    """Return `TopicsInfo#hashCode`."""
    changelogs = signed_int(
        sum(string_hash(topic) ^ _changelog_hash(topic, store) for topic, store in group.changelogs.items())
    )
    both = (set_hash(group.sources) << 32) | changelogs
    remainder = abs(both) % 0xFFFFFFFF
    return signed_int(remainder if both >= 0 else -remainder)


def _changelog_hash(topic: str, store: StateStore) -> int:
    """Return `hashCode` of the changelog's `InternalTopicConfig`."""
    overrides = {} if store.changelog_topic is not None else dict(store.overrides)
    if store.kind is ChangelogKind.WINDOWED_DUPLICATES:
        overrides = _DELETE | overrides
    parts = [string_hash(topic), map_hash(overrides)]
    if store.kind is not ChangelogKind.KEY_VALUE:
        parts.append(long_hash(store.base_ms or 0))
    return objects_hash(*parts, _JAVA_FALSE)
