"""Which expressions a node has, and the names that each may use."""

from collections.abc import Callable, Iterator, Mapping

import attrs

from infra.model import behaviors as does
from infra.model.behaviors import AggregationKind
from infra.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from infra.model.windows import SessionWindow
from spark_jobs.runtime.engine.records import Value

RECORD_METADATA = ("timestamp", "headers", "topic", "partition", "offset")
"""Known of every input record."""
RECORD = ("key", "value", *RECORD_METADATA)
FOLD = ("key", "total", "value", *RECORD_METADATA)
PAIR = ("key", "left", "right", *RECORD_METADATA)


@attrs.frozen
class Asked:
    """One expression of a node; `option` is what documents call it, `text` None = not given."""

    option: str
    text: str | None
    names: tuple[str, ...]


def expressions_of(node: Node) -> Iterator[Asked]:
    """Every expression that the node needs to run, or has though it could run without."""
    if isinstance(node, SourceNode):
        if node.reads is not None and node.reads.timestamp is not None:
            yield Asked("timestamp", node.reads.timestamp, RECORD)
    elif isinstance(node, SinkNode):
        if node.topic is None:
            text = node.writes.extractor if node.writes is not None else None
            yield Asked("extractor", text, RECORD)
    elif isinstance(node, ProcessorNode):
        yield from _ASKED.get(type(node.behavior), _none)(node.behavior)


def _none(_behavior: Value) -> Iterator[Asked]:
    return iter(())


def _option(option: str, field: str, names: tuple[str, ...] = RECORD) -> Callable[[Value], Iterator[Asked]]:
    def asked(behavior: Value) -> Iterator[Asked]:
        yield Asked(option, getattr(behavior, field), names)

    return asked


def _map(behavior: does.MapRecord) -> Iterator[Asked]:
    yield Asked("key", behavior.key, RECORD)
    if not behavior.keeps_value:
        yield Asked("value", behavior.value, RECORD)


def _peek(behavior: does.Peek) -> Iterator[Asked]:
    if behavior.each is not None:
        yield Asked("each", behavior.each, RECORD)


def _branch(behavior: does.Branch) -> Iterator[Asked]:
    return (Asked("where", predicate, RECORD) for predicate in behavior.predicates)


def _stream_aggregate(behavior: does.StreamAggregate) -> Iterator[Asked]:
    functions = behavior.aggregation
    if functions.kind is AggregationKind.COUNT:
        return
    if functions.kind is AggregationKind.AGGREGATE:
        yield Asked("init", functions.init, RECORD_METADATA)
    yield Asked("add", functions.add, FOLD)
    if functions.kind is AggregationKind.AGGREGATE and isinstance(behavior.window, SessionWindow):
        yield Asked("merge", functions.merge, PAIR)


def _table_aggregate(behavior: does.TableAggregate) -> Iterator[Asked]:
    functions = behavior.aggregation
    if functions.kind is AggregationKind.COUNT:
        return
    if functions.kind is AggregationKind.AGGREGATE:
        yield Asked("init", functions.init, RECORD_METADATA)
    yield Asked("add", functions.add, FOLD)
    yield Asked("remove", functions.remove, FOLD)


def _regroup(behavior: does.TableRepartitionMap) -> Iterator[Asked]:
    yield Asked("key", behavior.key, RECORD)
    if behavior.value is not None:  # otherwise it stays
        yield Asked("value", behavior.value, RECORD)


def _global_join(behavior: does.StreamGlobalJoin) -> Iterator[Asked]:
    yield Asked("key", behavior.key, RECORD)
    yield Asked("value", behavior.value, PAIR)


_joiner = _option("value", "value", PAIR)


def _one_side(behavior: does.StreamStreamJoin | does.TableTableJoin) -> Iterator[Asked]:
    """Both sides of a join have the same joiner."""
    return _joiner(behavior) if behavior.is_left else iter(())


_ASKED: Mapping[type, Callable[[Value], Iterator[Asked]]] = {
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
    """Whether the node needs a class of the user's, and which one."""
    behavior = node.behavior if isinstance(node, ProcessorNode) else None
    if isinstance(behavior, does.RunProcessor | does.TableTransformValues):
        return True, behavior.processor_class
    if isinstance(behavior, does.GlobalTableSource):
        return False, behavior.processor_class
    return False, None
