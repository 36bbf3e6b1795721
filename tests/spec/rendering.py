"""Problems and documents as text for golden files."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

from headwater.model.operators import Step
from headwater.model.problems import Location, Problem
from headwater.model.topology import TopologyDocument


def problems_text(problems: Iterable[Problem]) -> str:
    return "\n".join(_problem(problem) for problem in problems)


def _problem(problem: Problem) -> str:
    at = problem.location
    lines = [
        f"{problem.severity.value} {problem.code} at {at}" + (f" {at.pointer}" if at and at.pointer else ""),
        f"  {problem.summary}",
        f"  expected: {problem.expected}",
        f"  found: {problem.found}",
        f"  why: {problem.why}",
        f"  fix: {problem.fix}",
    ]
    return "\n".join(line for line in lines if not line.endswith(": None")) + "\n"


def document_text(document: TopologyDocument) -> str:
    """Return the values that differ from the defaults, one step per line, without locations."""
    lines = [
        value_text(attrs.evolve(document.application, config_locations={})),
        *map(value_text, document.sinks),
    ]
    if document.described is not None:
        lines.append(value_text(attrs.evolve(document.described, nodes=None)))  # type: ignore[arg-type]
        lines += [f"  {node.name}" for node in document.described.nodes.nodes]
    if document.observed is not None:
        lines.append(value_text(attrs.evolve(document.observed, unknown={}, locations={})))
        lines.append(f"  unknown: {', '.join(document.observed.unknown)}")
    return "\n".join([*lines, *(_step(step) for step in document.steps)]) + "\n"


def _step(step: Step) -> str:
    source = f" from {step.input}" if step.input is not None else ""
    result = f" as {step.alias}" if step.alias is not None else ""
    return f"- {value_text(step.operator)}{source}{result}"


def value_text(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    kind: Any = type(value)
    if not attrs.has(kind):
        return repr(value)
    fields = [
        f"{field.name}={value_text(getattr(value, field.name))}"
        for field in attrs.fields(kind)
        if not isinstance(getattr(value, field.name), Location)
        and getattr(value, field.name) != _default(field)
    ]
    return f"{kind.__name__}({', '.join(fields)})"


def _default(field: "attrs.Attribute[object]") -> object:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
