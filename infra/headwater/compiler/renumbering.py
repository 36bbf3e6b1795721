"""Detects renumbering: generated names of internal topics that shift when the topology changes.

A new operator shifts the generated indices of all operators after it. Kafka Streams then silently creates new
topics and no longer uses the old ones with their data.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.compiled import CompiledApplication, SubTopology, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity

_STARTS_EMPTY = (
    "A change of the topology shifts generated indices. Kafka Streams uses the new topic and no longer reads "
    "the old one: unless the state was copied (`headwater state copy`), the application loses it, and the "
    "records in flight."
)
_TAKEN_NAME = (
    "A change of the topology shifts generated indices. Kafka Streams uses a topic that another operator "
    "has used until now, with the data of that operator: results are wrong, or records cannot be "
    "deserialized."
)
_ACCEPT = "To continue without the old state, reset the application."
_ACCEPT_REFUSED = (
    "To continue without the data of the old topics, stop the application and set `setup.reinitialize: true` "
    "for one `pulumi up`. Do the same if you copy their data (`headwater state copy`)."
)
_UNDO = "Undo the change that shifted the index: no name that you can give keeps the name of this topic."
_NAMEABLE_STORE = re.compile(r"(?:.*-)?STATE-STORE-\d{10}")
_OTHER_STORES = ("KTABLE-SUPPRESS-STATE-STORE-", "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-")
"""Stores whose names have a suffix if the user names the operator: no name gives them the generated one."""
_INDEX = re.compile(r"\d{10}")


@attrs.frozen
class Renumbering:
    """An internal topic whose generated name changes from `old` to `new`."""

    old: str
    new: str


def find_renumberings(recorded: Mapping[str, str], compiled: Mapping[str, str]) -> tuple[Renumbering, ...]:
    """Return pairs of full topic names with a generated index, old and new.

    Both arguments: topic → its origin ("" = unknown). Names with the same origin are paired first, because a
    name may now belong to another operator. Then the remaining topics that only one side has are paired. The
    names of a pair differ only in the index. They are paired in order; if one side has more names, so that
    most of them shift by the same number.
    """
    old, new = _by_origin(recorded), _by_origin(compiled)
    pairs = [
        pair for origin in sorted(old.keys() & new.keys()) for pair in _find_renamed(old[origin], new[origin])
    ]
    old_only = recorded.keys() - compiled.keys() - {pair.old for pair in pairs}
    new_only = compiled.keys() - recorded.keys() - {pair.new for pair in pairs}
    return tuple(sorted((*pairs, *_find_renamed(old_only, new_only)), key=lambda pair: pair.old))


def _by_origin(names: Mapping[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, origin in names.items():
        if origin:
            found.setdefault(origin, set()).add(name)
    return found


def _find_renamed(old: AbstractSet[str], new: AbstractSet[str]) -> Iterator[Renumbering]:
    old_only, new_only = _by_shape(old - new), _by_shape(new - old)
    for shape in sorted(old_only.keys() & new_only.keys()):
        for before, after in _pair_indices(old_only[shape], new_only[shape]):
            yield Renumbering(old_only[shape][before], new_only[shape][after])


def renumbering_problems(
    recorded: Mapping[str, str], compiled: CompiledApplication, *, is_refused: bool = False
) -> tuple[Problem, ...]:
    """Return a RENUMBERED problem for each pair; `recorded`: generated topic at the last setup → its origin.

    `is_refused`: the loss of an internal topic is an error, not a warning (`internal.topics.setup: manual`).
    """
    topics = {topic.name: topic for topic in compiled.internal_topics if topic.generated}
    accept = _ACCEPT_REFUSED if is_refused else _ACCEPT
    prefix = (
        f"{StreamsConfig.from_application(compiled.application).topic_prefix or compiled.application.id}-"
    )
    return tuple(
        Problem(
            code=ProblemCode.RENUMBERED,
            summary=f"{pair.old} would be replaced by {pair.new}: its generated index changed.",
            application=compiled.application.id,
            topic=pair.new,
            node=topics[pair.new].node,
            expected=pair.old,
            found=pair.new,
            why=_TAKEN_NAME if pair.new in recorded else _STARTS_EMPTY,
            fix=f"{keep_name(pair.old.removeprefix(prefix), topics[pair.new].kind) or _UNDO} {accept}",
            location=topics[pair.new].at,
            severity=Severity.ERROR if is_refused else Severity.WARNING,
        )
        for pair in find_renumberings(recorded, origin_digests(compiled))
    )


def keep_name(former: str, kind: TopicKind) -> str:
    """Return how to give an internal topic its former generated name; empty if no name does.

    `former` is the name of the topic without the application id. With any other name, the topic is a new one.
    """
    if kind is TopicKind.CHANGELOG:
        store = former.removesuffix("-changelog")
        if _NAMEABLE_STORE.fullmatch(store) is None or store.startswith(_OTHER_STORES):
            return ""
        return (
            f"To keep its data, name the store exactly `{store}` (`materialized`), or undo the change that "
            "shifted the index. A name shifts the numbers after it: plan again before you apply it."
        )
    if kind is TopicKind.REPARTITION:
        name = former.removesuffix("-repartition")
        return (
            f"To keep its data, name the grouping exactly `{name}` (`name`; before a join, add `repartition: "
            f"{{name: {name}}}`), or undo the change that shifted the index."
        )
    return ""


def _by_shape(names: Iterable[str]) -> dict[str, dict[int, str]]:
    """Return name with # for its last index → index → name; application ids may contain digits, too."""
    shapes: dict[str, dict[int, str]] = {}
    for name in names:
        found = list(_INDEX.finditer(name))
        if found:
            start, end = found[-1].span()
            shapes.setdefault(f"{name[:start]}#{name[end:]}", {})[int(found[-1].group())] = name
    return {shape: dict(sorted(indices.items())) for shape, indices in shapes.items()}


def _pair_indices(old_only: Mapping[int, str], new_only: Mapping[int, str]) -> list[tuple[int, int]]:
    old, new = list(old_only), list(new_only)
    size = min(len(old), len(new))
    ways = [
        list(zip(old[first : first + size], new[second : second + size], strict=True))
        for first in range(len(old) - size + 1)
        for second in range(len(new) - size + 1)
    ]
    return max(ways, key=_most_frequent_shift)


def _most_frequent_shift(pairs: list[tuple[int, int]]) -> int:
    """Return how many of the pairs have the most frequent shift."""
    return max(Counter(after - before for before, after in pairs).values())


def origin_digests(compiled: CompiledApplication) -> Mapping[str, str]:
    """Return internal topic with a generated name → digest of the user topics upstream of it.

    All topics of a chain without a further user topic have the same origin.
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
            found[id_] = _digest_topics(external, {found[writer] for writer in above[id_] if writer in found})
    return found


def _digest_topics(topics: set[str], above: set[str]) -> str:
    if not topics and len(above) == 1:
        return next(iter(above))
    text = "\n".join([*sorted(topics), "", *sorted(above)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
