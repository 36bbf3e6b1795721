"""The code of users in a document: the expressions of a node with the names that each can use, and classes.

A document names a class as `module:Class`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import getattr_static, isabstract, isclass, isfunction, signature
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


def _option_expressions(
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


def _aggregate(behavior: does.StreamAggregate | does.TableAggregate) -> Iterator[NodeExpression]:
    functions = behavior.aggregation
    if functions.kind is AggregationKind.COUNT:
        return
    is_aggregate = functions.kind is AggregationKind.AGGREGATE
    if is_aggregate:
        yield NodeExpression("init", functions.init, RECORD_METADATA)
    yield NodeExpression("add", functions.add, FOLD)
    if isinstance(behavior, does.TableAggregate):
        yield NodeExpression("remove", functions.remove, FOLD)
    elif is_aggregate and isinstance(behavior.window, SessionWindow):
        yield NodeExpression("merge", functions.merge, PAIR)


def _regroup(behavior: does.TableRepartitionMap) -> Iterator[NodeExpression]:
    yield NodeExpression("key", behavior.key, RECORD)
    if behavior.value is not None:  # otherwise the value is unchanged
        yield NodeExpression("value", behavior.value, RECORD)


def _global_join(behavior: does.StreamGlobalJoin) -> Iterator[NodeExpression]:
    yield NodeExpression("key", behavior.key, RECORD)
    yield NodeExpression("value", behavior.value, PAIR)


_joiner = _option_expressions("value", "value", PAIR)


def _one_side(behavior: does.StreamStreamJoin | does.TableTableJoin) -> Iterator[NodeExpression]:
    """Yield the joiner of a join once: both sides have the same."""
    return _joiner(behavior) if behavior.is_left else iter(())


_EXPRESSIONS: Mapping[type, Callable[[Value], Iterator[NodeExpression]]] = {
    does.Filter: _option_expressions("where", "where"),
    does.MapRecord: _map,
    does.MapValues: _option_expressions("value", "value"),
    does.FlatMap: _option_expressions("each", "each"),
    does.FlatMapValues: _option_expressions("each", "each"),
    does.Peek: _peek,
    does.Branch: _branch,
    does.StreamAggregate: _aggregate,
    does.TableAggregate: _aggregate,
    does.TableFilter: _option_expressions("where", "where"),
    does.TableMapValues: _option_expressions("value", "value"),
    does.TableRepartitionMap: _regroup,
    does.StreamStreamJoin: _one_side,
    does.StreamSelfJoin: _joiner,
    does.StreamTableJoin: _joiner,
    does.StreamGlobalJoin: _global_join,
    does.TableTableJoin: _one_side,
    does.ForeignKeySend: _option_expressions("foreignKey", "foreign_key"),
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


_Methods = Mapping[str, tuple[str, ...]]
"""Name of a method → the arguments that the runtime passes to it."""

_STATIC_PARTITIONER: _Methods = {"static_partition": ("topic", "key", "num_partitions")}
_METHODS: Mapping[ClassRole, _Methods] = {
    ClassRole.PROCESSOR: {"init": ("context",), "process": ("record",), "close": ()},
    ClassRole.TRANSFORMER: {"init": ("context",), "transform": ("key", "value"), "close": ()},
    ClassRole.PARTITIONER: {"partition": ("topic", "key", "value", "num_partitions")},
    ClassRole.STATIC_PARTITIONER: _STATIC_PARTITIONER,
}
_NOT_DEFINED = (None, Processor.process, ValueTransformer.transform)
"""No method, or a method of a base class that only raises an error."""
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
    """Return why the runtime cannot use the object that a class name refers to; None = it can.

    A callable object that is neither a class nor a function is called like a class. What has no known
    signature is accepted, for example compiled code.
    """
    arguments = _ARGUMENTS.get(role)
    if isfunction(found) and arguments is not None:
        return (
            None if _accepts_count(found, len(arguments)) else f"a function that {_not_callable(arguments)}"
        )
    if isclass(found):
        return _find_fault_of_class(found, role)
    if not callable(found):
        return f"an object of the type {type(found).__name__}, not a class"
    if not _accepts_count(found, 0):
        return f"an object of the type {type(found).__name__}, not a class, that {_not_callable(())}"
    return None


def _find_fault_of_class(found: type, role: ClassRole) -> str | None:
    if isabstract(found):
        return "an abstract class, which cannot be created"
    if not _accepts_count(found, 0):
        return "a class that cannot be created without arguments"
    methods = _METHODS[role]
    if role is ClassRole.PARTITIONER and hasattr(found, "static_partition"):
        methods = _STATIC_PARTITIONER
    missing = [name for name in methods if getattr(found, name, None) in _NOT_DEFINED]
    if missing:
        return f"a class without the method {', '.join(missing)}"
    faults = (_find_fault_of_method(found, name, arguments) for name, arguments in methods.items())
    return next(filter(None, faults), None)


def _find_fault_of_method(found: type, name: str, arguments: tuple[str, ...]) -> str | None:
    """Return why a method of a class's objects cannot be called; None also for properties and the like."""
    defined: Value = getattr_static(found, name, None)
    method, count = getattr(found, name), len(arguments)
    if isfunction(defined):
        count += 1  # the object
    elif hasattr(defined, "__get__") and not isinstance(defined, staticmethod | classmethod):
        return None
    if not callable(method):
        return f"a class whose {name} is not a method"
    return (
        None if _accepts_count(method, count) else f"a class whose method {name} {_not_callable(arguments)}"
    )


def _not_callable(arguments: tuple[str, ...]) -> str:
    passed = f"with ({', '.join(arguments)})" if arguments else "without arguments"
    return f"cannot be called {passed}"


def _accepts_count(function: Callable[..., Value], count: int) -> bool:
    """Return whether a callable accepts `count` positional arguments; True if its signature is not known."""
    try:
        # A decorator may pass other arguments to the function that it wraps.
        known = signature(function, follow_wrapped=False)
    except (ValueError, TypeError):
        return True
    try:
        known.bind(*range(count))
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
