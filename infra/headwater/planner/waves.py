"""The order of expansions: downstream topics first.

Downstream of a topic are the topics that its readers write: repartition topics, managed sink topics and
changelog topics of the sub-topology that reads it. When records arrive in new partitions of a topic, all
topics downstream then have their new partitions already (KIP-878).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from headwater.model.compiled import CompiledApplication


def wave_numbers(compiled: Iterable[CompiledApplication], growing: Collection[str]) -> Mapping[str, int]:
    """Return topic → wave number for the topics that are expanded: 0 is first.

    Waves span applications that feed each other.
    """
    depths = _depths_of(_downstream_topics(compiled))
    used = sorted({depths.get(name, 0) for name in growing})
    numbers = {depth: number for number, depth in enumerate(used)}
    return {name: numbers[depths.get(name, 0)] for name in growing}


def _downstream_topics(compiled: Iterable[CompiledApplication]) -> Mapping[str, frozenset[str]]:
    """Return topic → the topics directly downstream."""
    downstream: defaultdict[str, set[str]] = defaultdict(set)
    for application in compiled:
        for part in application.subtopologies:
            written = {*part.sinks, *part.changelog_topics}
            for source in part.sources:
                downstream[source] |= written - {source}
            for topic in written:
                downstream[topic] |= set()
    return {name: frozenset(topics) for name, topics in downstream.items()}


def _depths_of(downstream: Mapping[str, frozenset[str]]) -> Mapping[str, int]:
    """Return topic → length of the longest path downstream.

    A cycle (in a foreign-key join the responses return to the sub-topology that sends the subscriptions) is
    cut after the topic that is farthest from the sources.
    """
    waiting = {name: len(topics) for name, topics in downstream.items()}
    before: defaultdict[str, list[str]] = defaultdict(list)
    for name, topics in downstream.items():
        for topic in topics:
            before[topic].append(name)
    depths: dict[str, int] = {}
    layer = [name for name, count in waiting.items() if not count]
    depth = 0
    while waiting:
        if not layer:
            layer = [_cut_cycle(waiting, downstream, before)]
        for name in layer:
            depths[name] = depth
            del waiting[name]
        reached = []
        for name in layer:
            for upstream in before[name]:
                if upstream in waiting:
                    waiting[upstream] -= 1
                    if not waiting[upstream]:
                        reached.append(upstream)
        layer, depth = reached, depth + 1
    return depths


def _cut_cycle(
    waiting: Collection[str], downstream: Mapping[str, frozenset[str]], before: Mapping[str, Sequence[str]]
) -> str:
    """Return where to cut. Every waiting topic has a waiting one downstream, so a path ends in a cycle."""
    distances = _distances_of(downstream, before)
    walked: list[str] = []
    name = min(waiting)
    while name not in walked:
        walked.append(name)
        name = min(topic for topic in downstream[name] if topic in waiting)
    return max(walked[walked.index(name) :], key=lambda topic: (distances.get(topic, 0), topic))


def _distances_of(
    downstream: Mapping[str, frozenset[str]], before: Mapping[str, Sequence[str]]
) -> Mapping[str, int]:
    """Return topic → distance from the topics that no application writes."""
    layer = [name for name in downstream if not before.get(name)]
    distances: dict[str, int] = {}
    while layer:
        depth = max(distances.values(), default=-1) + 1
        distances |= dict.fromkeys(layer, depth)
        layer = sorted({topic for name in layer for topic in downstream[name]} - distances.keys())
    return distances
