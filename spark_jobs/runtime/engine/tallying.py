"""PURE. Input that is only counted: how often each key came in a batch says as much as the single records.

That holds where a source's records go straight to a `count` whose cache keeps a batch's updates back: only
the last of a key's updates leaves it. The records need not become Python's objects for that: `worker.tallies`
counts them as columns.
"""

from collections.abc import Callable, Iterable, Sequence

import attrs

from infra.model.behaviors import AggregationKind, Reads, RunProcessor, StreamAggregate
from infra.model.nodes import Node, ProcessorNode, SourceNode
from spark_jobs.runtime.engine.records import InputRecord, Value

Absorb = Callable[[Value, int, int, InputRecord], None]
"""(key, how many records it had, their largest timestamp, the last one): what a count does with a tally."""

NO_KEY_OR_VALUE = "null key or value"
"""Why aggregations leave records out."""

Tally = tuple[bytes, int, int, InputRecord]
"""(key, how many records it had, their largest timestamp, the last one)"""


@attrs.frozen(kw_only=True)
class Tallies:
    """`of_keys` in the order of their last records; `dropped` records had no key or no value.

    `latest` is the largest timestamp, that of dropped ones too.
    """

    of_keys: Sequence[Tally]
    dropped: int
    latest: int


@attrs.frozen
class Counting:
    """How a task's only input is counted by the node of that name."""

    node: str
    read_key: Callable[[bytes], Value]
    absorb: Absorb


@attrs.frozen(kw_only=True)
class Counted:
    """`node` counts what `source` reads."""

    source: SourceNode
    node: ProcessorNode


def counted(nodes: Iterable[Node]) -> Counted | None:
    """Return the count of a sub-topology that takes in nothing else, None if single records matter.

    Processors' punctuations may fall between any two records.
    """
    nodes = tuple(nodes)
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    if len(sources) != 1 or any(
        isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor) for node in nodes
    ):
        return None
    (source,) = sources
    readers = [node for node in nodes if not isinstance(node, SourceNode) and source.name in node.parents]
    match source.reads, readers:
        case reads, [ProcessorNode(behavior=StreamAggregate(window=None) as behavior) as node] if (
            behavior.aggregation.kind is AggregationKind.COUNT and (reads is None or _is_plain(reads))
        ):
            return Counted(source=source, node=node)
    return None


def _is_plain(reads: Reads) -> bool:
    return reads.timestamp is None and reads.foreign_key is None and not reads.carries_changes
