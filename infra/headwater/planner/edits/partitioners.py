"""Which stores and repartition topics get the records of a key in another partition, at the same count."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.nodes import SinkNode, SourceNode
from headwater.model.problems import Severity
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import DRAIN, Subject, TopicEdit, Verdict

_DEFAULT = "Kafka's default"


@attrs.frozen
class PartitionerChange:
    """Another partitioner of what is written to a repartition topic; `topic` has the application's prefix.

    `is_certain` is False if it depends on whether partitions were added since the first start.
    """

    topic: str
    before: str
    after: str
    is_certain: bool = True


def partitioner_changes(before: Topology, after: Topology) -> Mapping[tuple[bool, str], PartitionerChange]:
    """Return (is a store, name afterwards) → the first change of a partitioner that concerns it.

    These are the repartition topics that both sides have, and the stores of the operators that process their
    records in the same task.
    """
    found: dict[tuple[bool, str], PartitionerChange] = {}
    old, new = _partitioners(before), _partitioners(after)
    was_static, is_static = (_static_function(each.config) for each in (before, after))
    for name in new:
        if name not in old or name not in after.repartitions:
            continue
        topic = after.repartitions[name].name
        first, second = old[name] or was_static, new[name] or is_static
        if first == second or (old[name] is None is new[name] and was_static is None):
            # The first static partitioner places keys as Kafka's default does until partitions are added.
            continue
        is_certain = old[name] != new[name]
        change = PartitionerChange(topic, first or _DEFAULT, second or _DEFAULT, is_certain)
        for concerned in ((False, name), *((True, store) for store in _stores_after(after, name))):
            found.setdefault(concerned, change)
    return found


def _partitioners(topology: Topology) -> Mapping[str, str | None]:
    """Return repartition topic, without prefix → the partitioner that users name, where the sink shows it."""
    return {
        str(node.topic): node.writes.partitioner
        for node in topology.nodes.nodes
        if isinstance(node, SinkNode) and node.topic in topology.graph.internal and node.writes is not None
    }


def _static_function(config: StreamsConfig) -> str | None:
    """Return the static partitioner of all producers of the application, None = Kafka's default."""
    if config.without_partitioner:
        return None
    return config.library_function or config.static_partitioner


def _stores_after(topology: Topology, repartition: str) -> Iterator[str]:
    """Yield the stores of the operators that get records of a repartition topic in the same task."""
    graph = topology.graph
    in_task = {
        name: tuple(child for child in below if not isinstance(graph.nodes[child], SourceNode))
        for name, below in graph.children.items()
    }
    readers = [
        node.name
        for node in graph.nodes.values()
        if isinstance(node, SourceNode) and repartition in node.topics
    ]
    for name in graph.reached(readers, in_task):
        yield from graph.stores_of(name)


def edit_of_other_partitioner(subject: Subject, change: PartitionerChange) -> TopicEdit:
    """Return the verdict for a topic whose keys get other partitions although the count is the same."""
    is_store = subject.store is not None
    name = f"store {subject.store}" if is_store else subject.name
    why = f"The partitioner of {change.topic} was {change.before} and is {change.after}."
    if not change.is_certain:
        return subject.edit(
            Verdict.UNKNOWN,
            Severity.WARNING,
            what=f"Keys of {name} may get other partitions.",
            why=f"{why} Both place keys in the same partitions only if no partition was added since the "
            "first start, which the input does not show.",
            first="Keep the static partitioner, unless no partition was added since the first start.",
        )
    return subject.edit(
        Verdict.MOVED,
        Severity.ERROR,
        what=f"Keys of {name} get other partitions.",
        why=f"{why} "
        + (
            "New records go to tasks that do not have the state of their keys."
            if is_store
            else "Records in flight are processed by other tasks than later records of the same key."
        ),
        first="Keep the partitioner, or reset the application." if is_store else DRAIN,
    )
