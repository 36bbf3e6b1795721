"""PURE. What each query of an application reads."""

from collections.abc import Mapping

import attrs

from infra.model.behaviors import RunProcessor, TableTransformValues
from infra.model.nodes import Node, ProcessorNode, SourceNode
from spark_jobs.runtime.driver.reset import Reset
from spark_jobs.runtime.engine.program import SubtopologyProgram

_RESET = "auto.offset.reset"


@attrs.frozen(kw_only=True)
class QueryInput:
    """One sub-topology's input: full topic names; patterns (Java regular expressions) not resolved.

    `ticks` = it has processors, which may ask to be called by the wall clock.
    """

    topics: tuple[str, ...]
    patterns: tuple[str, ...]
    resets: Mapping[str, Reset]
    """Source node → policy."""
    ticks: bool


def query_input(program: SubtopologyProgram) -> QueryInput:
    """Raise ValueError for a reset policy that there is not."""
    default = program.application.config.get(_RESET, "earliest")
    return QueryInput(
        topics=tuple(sorted(program.sources)),
        patterns=tuple(pattern for pattern, _ in program.patterns),
        resets={
            node.name: Reset.of((node.reads.offset_reset if node.reads else None) or default)
            for node in program.nodes
            if isinstance(node, SourceNode)
        },
        ticks=any(_may_schedule(node) for node in program.nodes),
    )


def _may_schedule(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor | TableTransformValues)
