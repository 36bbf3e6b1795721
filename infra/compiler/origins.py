"""PURE. From which user topics an internal topic descends: what tells operators of one kind apart."""

import hashlib
from collections.abc import Iterable, Mapping

from infra.model.compiled import CompiledApplication, SubTopology


def origins(compiled: CompiledApplication) -> Mapping[str, str]:
    """Internal topic with a generated name → a digest of the user topics and sub-topologies above it.

    Topics in a chain that no further user topic flows into have one origin, however long it is.
    """
    of_part = _of_subtopologies(compiled.subtopologies)
    return {
        topic.name: of_part.get(topic.subtopology, "")
        for topic in compiled.internal_topics
        if topic.generated and topic.subtopology is not None
    }


def _of_subtopologies(parts: Iterable[SubTopology]) -> Mapping[int, str]:
    by_id = {part.id: part for part in parts}
    writers: dict[str, list[int]] = {}
    for part in by_id.values():
        for topic in part.sinks:
            writers.setdefault(topic, []).append(part.id)
    internal = {topic for part in by_id.values() for topic in part.repartition_topics}
    above = {
        part.id: tuple(
            writer for topic in part.sources if topic in internal for writer in writers.get(topic, ())
        )
        for part in by_id.values()
    }
    found: dict[int, str] = {}
    for first in by_id:
        stack, entered = [first], set[int]()
        while stack:
            id_ = stack.pop()
            if id_ in found:
                continue
            waiting = [writer for writer in above[id_] if writer not in found and writer not in entered]
            if waiting:
                entered.add(id_)
                stack += [id_, *waiting]
                continue
            part = by_id[id_]
            external = {*part.source_patterns, *part.sources} - internal
            found[id_] = _digest(external, {found[writer] for writer in above[id_] if writer in found})
    return found


def _digest(topics: set[str], above: set[str]) -> str:
    if not topics and len(above) == 1:
        return next(iter(above))
    text = "\n".join([*sorted(topics), "", *sorted(above)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
