"""In which order partitions are added: downstream topics first, working upstream.

A topic lies upstream of what its readers write: repartition and managed sink topics of the sub-topology that
reads it, and that sub-topology's changelogs. Whoever writes to the new partitions of a topic then finds
everything behind them in place.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from infra.model.compiled import CompiledApplication


def waves(compiled: Iterable[CompiledApplication], growing: Collection[str]) -> Mapping[str, int]:
    """Return wave numbers for the topics that grow: 0 is first. Spans applications that feed each other."""
    depths = _depths(_downstream(compiled))
    used = sorted({depths.get(name, 0) for name in growing})
    numbers = {depth: number for number, depth in enumerate(used)}
    return {name: numbers[depths.get(name, 0)] for name in growing}


def _downstream(compiled: Iterable[CompiledApplication]) -> Mapping[str, frozenset[str]]:
    """Topic → the topics directly behind it."""
    behind: defaultdict[str, set[str]] = defaultdict(set)
    for application in compiled:
        for part in application.subtopologies:
            written = {*part.sinks, *part.changelog_topics}
            for source in part.sources:
                behind[source] |= written - {source}
            for topic in written:
                behind[topic] |= set()
    return {name: frozenset(topics) for name, topics in behind.items()}


def _depths(behind: Mapping[str, frozenset[str]]) -> Mapping[str, int]:
    """Topic → length of the longest way down from it.

    A cycle (a foreign-key join has one: its responses return to where the subscriptions come from) is cut
    behind the topic that lies farthest from the sources.
    """
    waiting = {name: len(topics) for name, topics in behind.items()}
    before: defaultdict[str, list[str]] = defaultdict(list)
    for name, topics in behind.items():
        for topic in topics:
            before[topic].append(name)
    depths: dict[str, int] = {}
    layer = [name for name, count in waiting.items() if not count]
    depth = 0
    while waiting:
        if not layer:
            layer = [_cut(waiting, behind, before)]
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


def _cut(
    waiting: Collection[str], behind: Mapping[str, frozenset[str]], before: Mapping[str, Sequence[str]]
) -> str:
    """Walk down until a topic comes again; every waiting topic has a waiting one behind it."""
    distances = _distances(behind, before)
    walked: list[str] = []
    name = min(waiting)
    while name not in walked:
        walked.append(name)
        name = min(topic for topic in behind[name] if topic in waiting)
    return max(walked[walked.index(name) :], key=lambda topic: (distances.get(topic, 0), topic))


def _distances(
    behind: Mapping[str, frozenset[str]], before: Mapping[str, Sequence[str]]
) -> Mapping[str, int]:
    """Topic → how far it lies behind the topics that nobody writes."""
    layer = [name for name in behind if not before.get(name)]
    distances: dict[str, int] = {}
    while layer:
        depth = max(distances.values(), default=-1) + 1
        distances |= dict.fromkeys(layer, depth)
        layer = sorted({topic for name in layer for topic in behind[name]} - distances.keys())
    return distances
