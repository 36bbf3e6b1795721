"""Connect the nodes of a sub-topology: from its program to functions that call each other."""

import sys
from collections.abc import Iterable, Mapping

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater_spark.engine.error_handlers import PoisonRecordError
from headwater_spark.engine.key_counts import (
    CountedSource,
    KeyCounter,
    WindowCounter,
    counted_source,
    only_counted_source,
)
from headwater_spark.engine.operators import FACTORIES
from headwater_spark.engine.operators.interface import NotRunnableError, OperatorContext, Process
from headwater_spark.engine.program_interface import Program, Serde
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes import reads_anything
from headwater_spark.engine.sources_and_sinks import (
    HeadReader,
    ProcessInput,
    build_sink,
    build_source,
    head_reader,
    serdes_of,
)
from headwater_spark.engine.task_context import TaskContext

_FRAMES_PER_NODE = 5
_SPARE_FRAMES = 1000


@attrs.frozen
class NodeGraph:
    """The entry points of a sub-topology's nodes."""

    sources: Mapping[str, ProcessInput]
    """Source node → function that processes a record and all that follows from it."""
    head_readers: Mapping[str, HeadReader]
    """Source node → how it reads heads; only sources that may skip records or extract timestamps."""
    key_counter: KeyCounter | None
    """Set if counts per key are enough as input (`key_counts`)."""
    window_counter: WindowCounter | None
    """Set if the input may be in columns with numbered keys (`KeyedColumns`)."""


def connect_nodes(task: TaskContext) -> NodeGraph:
    """Build the nodes of the task's program, children before parents."""
    nodes = task.program.nodes
    frames = _SPARE_FRAMES + _FRAMES_PER_NODE * len(nodes)  # a record goes through the graph depth first
    sys.setrecursionlimit(max(sys.getrecursionlimit(), frames))
    built: dict[str, Process] = {}
    sources: dict[str, ProcessInput] = {}
    readers: dict[str, HeadReader] = {}
    children_of = _list_children(nodes)
    for node in reversed(nodes):
        children = {child: built[child] for child in children_of[node.name]}
        forward = _forward_to(tuple(children.values()))
        match node:
            case SinkNode():
                built[node.name] = build_sink(node, task)
            case ProcessorNode():
                built[node.name] = _create_operator(node, children, forward, task)
            case SourceNode():
                sources[node.name] = build_source(node, forward, task)
                reader = head_reader(node, forward, task)
                if reader is not None:
                    readers[node.name] = reader
    return NodeGraph(sources, readers, _key_counter(task), _window_counter(task))


def _list_children(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return the children of each node, in declaration order."""
    children: dict[str, list[str]] = {}
    for node in nodes:
        children[node.name] = []
        if not isinstance(node, SourceNode):
            for parent in node.parents:
                children[parent].append(node.name)
    return children


def _create_operator(
    node: ProcessorNode, children: Mapping[str, Process], forward: Process, task: TaskContext
) -> Process:
    if node.behavior is None:
        raise NotRunnableError(f"{node.name} is from a description, which does not contain its behavior")
    factory = FACTORIES[type(node.behavior)]
    process = factory(node.behavior, OperatorContext(node, children, forward, task))
    return process if task.error_handlers.fails_on_processing_error else _skipping_errors(process, task)


def _skipping_errors(process: Process, task: TaskContext) -> Process:
    """Skip a record only at the node that fails on it; its parent and siblings continue (`ProcessorNode`)."""
    current, error_handlers = task.current, task.error_handlers

    def process_or_skip(key: Value, value: Value, timestamp: int, headers: Value) -> None:
        before = current.record, current.context
        try:
            process(key, value, timestamp, headers)
        except PoisonRecordError:
            raise
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            current.record, current.context = before
            error_handlers.processing_failed(current.record, error)

    return process_or_skip


def ignores_values(program: Program) -> bool:
    """Return whether a value matters only by being null or not: records are counted, and cannot fail."""
    counted = only_counted_source(program.nodes)
    return (
        counted is not None
        and all(map(reads_anything, serdes_of(counted.source.reads, program)))
        and program.settings.dead_letter_topic is None
    )


def _key_counter(task: TaskContext) -> KeyCounter | None:
    counted = counted_source(task.program.nodes)
    count = task.add_counts.get(counted.node.name) if counted is not None else None
    if counted is None or count is None:
        return None
    key, value = serdes_of(counted.source.reads, task.program)
    if not (reads_anything(key) and reads_anything(value) and _stores_keys(counted, key, task)):
        return None
    return KeyCounter(counted.node.name, key.deserialize, count)


def _window_counter(task: TaskContext) -> WindowCounter | None:
    counted = counted_source(task.program.nodes)
    counts = task.window_counts.get(counted.node.name) if counted is not None else None
    if counted is None or counts is None or not counts.is_usable or not ignores_values(task.program):
        return None
    key, _ = serdes_of(counted.source.reads, task.program)
    if not _stores_keys(counted, key, task):
        return None
    return WindowCounter(counted.node.name, key.deserialize, counts)


def _stores_keys(counted: CountedSource, key: Serde, task: TaskContext) -> bool:
    """Return whether the store can write all keys. Otherwise, single records report which record failed."""
    behavior = counted.node.behavior
    return isinstance(behavior, StreamAggregate) and task.stores.typed_store(behavior.store).key_serde is key


def _forward_to(children: tuple[Process, ...]) -> Process:
    """Return a function that calls all children in order; for one child, the child itself."""
    match children:
        case ():
            return _discard_record
        case (only,):
            return only
        case (first, second):

            def both(key: Value, value: Value, timestamp: int, headers: Value) -> None:
                first(key, value, timestamp, headers)
                second(key, value, timestamp, headers)

            return both

    def each(key: Value, value: Value, timestamp: int, headers: Value) -> None:
        for child in children:
            child(key, value, timestamp, headers)

    return each


def _discard_record(key: Value, value: Value, timestamp: int, headers: Value) -> None:
    """Forward to no child."""
