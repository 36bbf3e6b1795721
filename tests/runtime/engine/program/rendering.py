"""A program as text, for golden files."""

from collections.abc import Iterator
from typing import Any

import attrs

from headwater.model.behaviors import Format, RecordFormat
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater_spark.engine.program import SubtopologyProgram


def rendered(program: SubtopologyProgram) -> Iterator[str]:
    kind = "global" if program.is_global else f"{program.tasks} tasks"
    yield f"program {program.name} ({kind})"
    for node in program.nodes:
        yield from _node(program, node)
    for store in program.stores:
        yield _store(program, store)


def _node(program: SubtopologyProgram, node: Node) -> Iterator[str]:
    if isinstance(node, SourceNode):
        topics = [topic for topic, reader in program.sources.items() if reader == node.name]
        patterns = [f"/{pattern}/" for pattern, reader in program.patterns if reader == node.name]
        yield f"  source {node.name} <- {', '.join((*topics, *patterns))}"
        yield f"    {_options(node.reads)}"
    elif isinstance(node, SinkNode):
        rule = program.partitioning[node.name]
        by = rule.rule.value + (f" {rule.partitioner}" if rule.partitioner else "")
        yield f"  sink {node.name} <- {', '.join(node.parents)} -> {program.topic(node.name)} by {by}"
        yield f"    {_options(node.writes)}"
    else:
        yield f"  {node.name} <- {', '.join(node.parents)}{_stores(node)}"
        yield f"    {_options(node.behavior)}"


def _stores(node: ProcessorNode) -> str:
    return f" [{', '.join(node.stores)}]" if node.stores else ""


def _store(program: SubtopologyProgram, store: StateStore) -> str:
    log = program.changelog(store.name) or program.source_changelogs.get(store.name)
    return f"  store {store.name} -> {log}: {_options(store.keeps)}"


def _options(value: object) -> str:
    """Return the class and the fields that differ from their defaults."""
    kind: Any = type(value)
    if not attrs.has(kind):
        return repr(value)
    if isinstance(value, RecordFormat):
        return f"({_format(value.key)}, {_format(value.value)})"
    if isinstance(value, Format):
        return _format(value)
    fields = [
        f"{field.name}={_options(each) if attrs.has(type(each)) else repr(each)}"
        for field in attrs.fields(kind)
        if (each := getattr(value, field.name)) != field.default
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


def _format(wanted: Format | None) -> str:
    if wanted is None:
        return "default"
    window = f"{wanted.window}:{wanted.size_ms} of " if wanted.window else ""
    return window + wanted.name
