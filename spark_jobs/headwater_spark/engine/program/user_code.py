"""The code of users in a document: the expressions of a node with the names that each can use, and classes.

A document names a class as `module:Class`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import isclass, isfunction, signature
from typing import Any

import attrs

from headwater.model import behaviors as does
from headwater.model.behaviors import AggregationKind
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import Location
from headwater.model.topology import Application
from headwater.model.windows import SessionWindow
from headwater_spark.engine.partitioners.static import CLASS
from headwater_spark.engine.records import Value
from headwater_spark.processors import Processor, ValueTransformer

RECORD_METADATA = ("timestamp", "headers", "topic", "partition", "offset")
"""Available in all expressions."""
RECORD = ("key", "value", *RECORD_METADATA)
FOLD = ("key", "total", "value", *RECORD_METADATA)
PAIR = ("key", "left", "right", *RECORD_METADATA)

_CLASS_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@attrs.frozen
class NodeExpression:
    """One expression of a node. `option` is its key in documents; `text` None = the document has none."""

    option: str
    text: str | None
    names: tuple[str, ...]


def expressions_of(node: Node) -> Iterator[NodeExpression]:
    """Yield the expressions of a node: the required ones, and optional ones that are set."""
    if isinstance(node, SourceNode):
        if node.reads is not None and node.reads.timestamp is not None:
            yield NodeExpression("timestamp", node.reads.timestamp, RECORD)
    elif isinstance(node, SinkNode):
        if node.topic is None:
            text = node.writes.topic_expression if node.writes is not None else None
            yield NodeExpression("topicExpression", text, RECORD)
    elif isinstance(node, ProcessorNode):
        yield from _EXPRESSIONS.get(type(node.behavior), _no_expressions)(node.behavior)


def _no_expressions(_behavior: Value) -> Iterator[NodeExpression]:
    return iter(())


def _option(
    option: str, field: str, names: tuple[str, ...] = RECORD
) -> Callable[[Value], Iterator[NodeExpression]]:
    def expressions(behavior: Value) -> Iterator[NodeExpression]:
        yield NodeExpression(option, getattr(behavior, field), names)

    return expressions


def _map(behavior: does.MapRecord) -> Iterator[NodeExpression]:
    yield NodeExpression("key", behavior.key, RECORD)
    if not behavior.keeps_value:
        yield NodeExpression("value", behavior.value, RECORD)


def _peek(behavior: does.Peek) -> Iterator[NodeExpression]:
    if behavior.each is not None:
        yield NodeExpression("each", behavior.each, RECORD)


def _branch(behavior: does.Branch) -> Iterator[NodeExpression]:
    return (NodeExpression("where", predicate, RECORD) for predicate in behavior.predicates)


def _stream_aggregate(behavior: does.StreamAggregate) -> Iterator[NodeExpression]:
    functions = behavior.aggregation
    if functions.kind is AggregationKind.COUNT:
        return
    if functions.kind is AggregationKind.AGGREGATE:
        yield NodeExpression("init", functions.init, RECORD_METADATA)
    yield NodeExpression("add", functions.add, FOLD)
    if functions.kind is AggregationKind.AGGREGATE and isinstance(behavior.window, SessionWindow):
        yield NodeExpression("merge", functions.merge, PAIR)


def _table_aggregate(behavior: does.TableAggregate) -> Iterator[NodeExpression]:
    functions = behavior.aggregation
    if functions.kind is AggregationKind.COUNT:
        return
    if functions.kind is AggregationKind.AGGREGATE:
        yield NodeExpression("init", functions.init, RECORD_METADATA)
    yield NodeExpression("add", functions.add, FOLD)
    yield NodeExpression("remove", functions.remove, FOLD)


def _regroup(behavior: does.TableRepartitionMap) -> Iterator[NodeExpression]:
    yield NodeExpression("key", behavior.key, RECORD)
    if behavior.value is not None:  # otherwise the value is unchanged
        yield NodeExpression("value", behavior.value, RECORD)


def _global_join(behavior: does.StreamGlobalJoin) -> Iterator[NodeExpression]:
    yield NodeExpression("key", behavior.key, RECORD)
    yield NodeExpression("value", behavior.value, PAIR)


_joiner = _option("value", "value", PAIR)


def _one_side(behavior: does.StreamStreamJoin | does.TableTableJoin) -> Iterator[NodeExpression]:
    """Yield the joiner of a join once: both sides have the same."""
    return _joiner(behavior) if behavior.is_left else iter(())


_EXPRESSIONS: Mapping[type, Callable[[Value], Iterator[NodeExpression]]] = {
    does.Filter: _option("where", "where"),
    does.MapRecord: _map,
    does.MapValues: _option("value", "value"),
    does.FlatMap: _option("each", "each"),
    does.FlatMapValues: _option("each", "each"),
    does.Peek: _peek,
    does.Branch: _branch,
    does.StreamAggregate: _stream_aggregate,
    does.TableAggregate: _table_aggregate,
    does.TableFilter: _option("where", "where"),
    does.TableMapValues: _option("value", "value"),
    does.TableRepartitionMap: _regroup,
    does.StreamStreamJoin: _one_side,
    does.StreamSelfJoin: _joiner,
    does.StreamTableJoin: _joiner,
    does.StreamGlobalJoin: _global_join,
    does.TableTableJoin: _one_side,
    does.ForeignKeySend: _option("foreignKey", "foreign_key"),
    does.ForeignKeyResolve: _joiner,
}


def class_of(node: Node) -> tuple[bool, str | None]:
    """Return whether a node requires a user's class, and its name."""
    behavior = node.behavior if isinstance(node, ProcessorNode) else None
    if isinstance(behavior, does.RunProcessor | does.TableTransformValues):
        return True, behavior.processor_class
    if isinstance(behavior, does.GlobalTableSource):
        return False, behavior.processor_class
    return False, None


def is_class_name(text: str) -> bool:
    """Return whether a text has the form `module:Class`."""
    return _CLASS_NAME.fullmatch(text) is not None


def load_class(name: str) -> Any:  # noqa: ANN401 - an object of the user
    """Import and return a class. Raises ImportError if `name` is not `module:Class`, or does not exist."""
    module, colon, path = name.partition(":")
    if not colon:
        raise ImportError(f"{name} is not of the form module:Class")
    try:
        found = import_module(module)
    except SystemExit as error:  # a program, not a module: it would end this process, too
        raise ImportError(f"{module} ends the process when it is imported: {error}") from None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ImportError(f"{module} has no {path}") from None
    return found


class ClassRole(Enum):
    """What the runtime does with an object of a user's class, or with a function of the user."""

    PROCESSOR = "processor"
    TRANSFORMER = "transformer"
    PARTITIONER = "partitioner"
    STATIC_PARTITIONER = "static partitioner"


_METHODS: Mapping[ClassRole, tuple[str, ...]] = {
    ClassRole.PROCESSOR: ("init", "process", "close"),
    ClassRole.TRANSFORMER: ("init", "transform", "close"),
    ClassRole.PARTITIONER: ("partition",),
    ClassRole.STATIC_PARTITIONER: ("static_partition",),
}
_NOT_DEFINED = (Processor.process, ValueTransformer.transform)
"""Methods of base classes that only raise an error."""
_ARGUMENTS: Mapping[ClassRole, tuple[str, ...]] = {
    ClassRole.PROCESSOR: ("record",),
    ClassRole.TRANSFORMER: ("key", "value"),
}
"""Role → the arguments of a function in place of a class; other roles have none."""


@attrs.frozen
class NamedClass:
    """A class that a document names. `user` is the node or the config key that needs it."""

    name: str
    role: ClassRole
    user: str
    at: Location | None


def find_class_fault(found: Value, role: ClassRole) -> str | None:
    """Return why the runtime cannot use what a name of a class stands for; None = it can.

    A callable object that is neither a class nor a function is called like a class.
    """
    arguments = _ARGUMENTS.get(role)
    if isfunction(found) and arguments is not None:
        takes = _can_be_called(found, len(arguments))
        return None if takes else f"a function that cannot be called with ({', '.join(arguments)})"
    if not callable(found) or (isfunction(found) and not _can_be_called(found, 0)):
        return f"an object of the type {type(found).__name__}, not a class"
    if not isclass(found):
        return None
    if not _can_be_called(found, 0):
        return "a class that cannot be created without arguments"
    missing = [name for name in _METHODS[role] if getattr(found, name, None) in (None, *_NOT_DEFINED)]
    return f"a class without the method {', '.join(missing)}" if missing else None


def _can_be_called(function: Callable[..., Value], arguments: int) -> bool:
    """Return whether a function or a class accepts so many positional arguments; True if it is not known."""
    try:
        signature(function).bind(*range(arguments))
    except ValueError:  # of compiled code
        return True
    except TypeError:
        return False
    return True


def named_classes(nodes: NodeTopology, application: Application) -> Iterator[NamedClass]:
    """Yield the classes that a document names: processors and partitioners of nodes, then of the config."""
    for node in nodes.nodes:
        _, name = class_of(node)
        if name is not None:
            yield NamedClass(name, _role_of(node), node.name, node.at)
        if isinstance(node, SinkNode) and node.writes is not None and ":" in (node.writes.partitioner or ""):
            yield NamedClass(node.writes.partitioner or "", ClassRole.PARTITIONER, node.name, node.at)
    if ":" in application.config.get(CLASS, ""):
        yield NamedClass(application.config[CLASS], ClassRole.STATIC_PARTITIONER, CLASS, application.at)


def _role_of(node: Node) -> ClassRole:
    behavior = node.behavior if isinstance(node, ProcessorNode) else None
    is_transformer = isinstance(behavior, does.TableTransformValues)
    return ClassRole.TRANSFORMER if is_transformer else ClassRole.PROCESSOR
