"""Which stores and repartition topics get the records of a key in another partition, at the same count."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.behaviors import StreamStreamJoin
from headwater.model.nodes import ProcessorNode, SinkNode
from headwater.model.problems import Severity
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import DRAIN, OperatorEdit, Subject, TopicEdit, Verdict
from headwater.planner.phrases import listed

_DEFAULT = "Kafka's default"
_INPUT = "partitioner of its input"
_OTHER_STATIC = (
    "Both place keys in the same partitions only if no partition was added since the first start, which the "
    "input does not show."
)
_OF_PRODUCERS = "The input does not show the partitioner of what writes the source topics."
_IF_DEFAULT = (
    "Keys stay in their partitions if what writes the source topics uses Kafka's default partitioner, too."
)
Origins = Mapping[tuple[bool, str], str]


@attrs.frozen
class PartitionerChange:
    """Other partitioners of the records in a repartition topic, or of the records that a store gets.

    `before` and `after` are their names; None = what writes the source topics chooses.
    `verdict` is `moved`; `unknown` if it depends on what the input does not show; `kept` if keys stay in
    their partitions with Kafka's default partitioner. `why` says what has changed.
    """

    before: str | None
    after: str | None
    verdict: Verdict
    why: str


def partitioner_changes(
    before: Topology, after: Topology, origins: Origins
) -> Mapping[tuple[bool, str], PartitionerChange]:
    """Return (is a store, name afterwards) → the change of partitioners that concerns it.

    `origins` are (is a store, name afterwards) → name before. A store is concerned if records that are
    written to it come from a repartition topic in the same task.
    """
    found: dict[tuple[bool, str], PartitionerChange | None] = {}
    comparison = _Comparison(before, after)
    for (is_store, new), old in origins.items():
        if is_store:
            change = _change_of_store(comparison, origins, old, new)
        else:
            change = comparison.change({old}, {new})
        found[is_store, new] = change
    for name in after.repartitions:
        if (False, name) not in origins and any(_named_partitioners(after, {name})):
            found[False, name] = comparison.change(set(), {name})
    return {key: change for key, change in found.items() if change is not None}


def _change_of_store(
    comparison: "_Comparison", origins: Origins, old: str, new: str
) -> PartitionerChange | None:
    olds, news = _topics_before(comparison.before, old), _topics_before(comparison.after, new)
    pairs = {topic: origins[False, topic] for topic in news if origins.get((False, topic)) in olds}
    changes = [comparison.change({former}, {topic}) for topic, former in sorted(pairs.items())]
    changes.append(comparison.change(olds - set(pairs.values()), news - pairs.keys()))
    order = tuple(Verdict)
    return min(filter(None, changes), key=lambda change: order.index(change.verdict), default=None)


@attrs.frozen
class _Comparison:
    before: Topology
    after: Topology

    def change(self, old: set[str], new: set[str]) -> PartitionerChange | None:
        """Return the change from repartition topics before to those afterwards, None if there is none."""
        named = _named_partitioners(self.before, old), _named_partitioners(self.after, new)
        was_static, is_static = (_static_function(each.config) for each in (self.before, self.after))
        first = listed({each or was_static or _DEFAULT for each in named[0]})
        second = listed({each or is_static or _DEFAULT for each in named[1]})
        if first == second:
            return None
        if old and new:
            if named[0] == named[1] and was_static is None:
                # The first static partitioner places keys as Kafka's default does until partitions are added.
                return None
            why = f"The partitioner of {self._topics_text(new)} was {first} and is {second}."
            if named[0] != named[1]:
                return PartitionerChange(first, second, Verdict.MOVED, why)
            return PartitionerChange(first, second, Verdict.UNKNOWN, f"{why} {_OTHER_STATIC}")
        if new:
            why = f"Records come through {self._topics_text(new)} afterwards (partitioner: {second})."
        else:
            why = f"Records came through {self._topics_text(old)} before (partitioner: {first})."
        values = first or None, second or None
        if any(named[0] | named[1]):
            return PartitionerChange(*values, Verdict.MOVED, why)
        if (is_static if new else was_static) is not None:
            return PartitionerChange(*values, Verdict.UNKNOWN, f"{why} {_OF_PRODUCERS}")
        return PartitionerChange(*values, Verdict.KEPT, f"{why} {_IF_DEFAULT}")

    def _topics_text(self, names: Iterable[str]) -> str:
        known = {**self.before.repartitions, **self.after.repartitions}
        return listed(known[name].name if name in known else name for name in names)


def _named_partitioners(topology: Topology, names: Iterable[str]) -> set[str | None]:
    """Return the partitioners that users have named for repartition topics; None = no name, or not shown."""
    of_topics: dict[str | None, set[str | None]] = {}
    for node in topology.nodes.nodes:
        if isinstance(node, SinkNode):
            of_topics.setdefault(node.topic, set()).add(node.writes.partitioner if node.writes else None)
    return {each for name in names for each in of_topics.get(name, {None})}


def _static_function(config: StreamsConfig) -> str | None:
    """Return the static partitioner of all producers of the application, None = Kafka's default."""
    if config.without_partitioner:
        return None
    return config.library_function or config.static_partitioner


def _topics_before(topology: Topology, store: str) -> set[str]:
    """Return the repartition topics whose records are written to a store in the same task."""
    users = topology.graph.users_of(store)
    writers = [*topology.graph.writers_among(store, users)] or users
    shared = [name for name in users if _shares_store(topology.graph.nodes[name], store)]
    return _topics_of(topology, (*writers, *shared))


def _topics_of(topology: Topology, nodes: Iterable[str]) -> set[str]:
    """Return the repartition topics whose records nodes get in the same task."""
    graph = topology.graph
    return {
        topic
        for name in graph.reachable_nodes(nodes, graph.parents_in_task)
        for topic in getattr(graph.nodes[name], "topics", ())
        if topic in graph.internal
    }


def _shares_store(node: object, store: str) -> bool:
    """Return whether a node is a side of a join that writes the store, which both sides do."""
    return (
        isinstance(node, ProcessorNode)
        and isinstance(node.behavior, StreamStreamJoin)
        and store == node.behavior.shared
    )


def joins_of_other_partitioners(
    after: Topology, changes: Mapping[tuple[bool, str], PartitionerChange]
) -> Iterator[OperatorEdit]:
    """Yield the joins whose input has another partitioner afterwards, but not the store that they read."""
    for node in after.nodes.nodes:
        if not isinstance(node, ProcessorNode) or node.name in after.nodes.global_nodes:
            continue
        moved = [
            change
            for topic in sorted(_topics_of(after, [node.name]))
            if (change := changes.get((False, topic))) is not None and change.verdict is not Verdict.KEPT
        ]
        read = [store for store in node.stores if not any(after.graph.writers_among(store, [node.name]))]
        for change in moved[:1]:
            stores = [
                store for store in read if not _has_same_partitioners(changes.get((True, store)), change)
            ]
            if stores:
                yield OperatorEdit(
                    operator=node.name,
                    aspect=_INPUT,
                    before=change.before,
                    after=change.after,
                    why=f"{listed(stores)} keeps its partitions: the join finds no entry of a key that the "
                    "partitioner of its input gives to another partition.",
                    location=node.at,
                )


def _has_same_partitioners(change: PartitionerChange | None, other: PartitionerChange) -> bool:
    return change is not None and (change.before, change.after) == (other.before, other.after)


def edit_of_other_partitioner(subject: Subject, change: PartitionerChange) -> TopicEdit:
    """Return the verdict for a topic whose keys get other partitions although the count is the same."""
    is_store = subject.store is not None
    name = f"store {subject.store}" if is_store else subject.name
    if change.verdict is Verdict.UNKNOWN:
        return subject.edit(
            Verdict.UNKNOWN,
            Severity.WARNING,
            what=f"Keys of {name} may get other partitions.",
            why=change.why,
            first="Keep the static partitioner, unless no partition was added since the first start."
            if change.before is not None and change.after is not None
            else "Keep the repartition topics before the store, or reset the application.",
        )
    return subject.edit(
        Verdict.MOVED,
        Severity.ERROR,
        what=f"Keys of {name} get other partitions.",
        why=f"{change.why} "
        + (
            "New records go to tasks that do not have the state of their keys."
            if is_store
            else "Records in flight are processed by other tasks than later records of the same key."
        ),
        first="Keep the partitioner, or reset the application." if is_store else DRAIN,
    )
