"""The content of a document's topology, as text that is the same if the document declares the same."""

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

from headwater.model.operators import Branch, Split, Step
from headwater.model.problems import Location, Problem
from headwater.model.topology import TopologyDocument, UnknownDetails
from headwater.planner.expression_text import normalize_expression

CONTENT_VERSION = 1
"""Raise it if `topology_content` returns another text for the same document."""
_NO_CONTENT = (Location, Problem, UnknownDetails)
_EXPRESSIONS = frozenset(
    {
        *("where", "key", "value", "each", "add", "remove", "init", "merge", "foreign_key", "timestamp"),
        *("topic_expression", "extractor"),
    }
)
"""The fields of calls that are expressions."""


def topology_content(document: TopologyDocument | None) -> str:
    """Return the calls, the described nodes or the exported nodes of a document, empty if it has none.

    Locations in the file, defaults, the names of handles and white space in expressions have no part in it.
    """
    if document is None:
        return ""
    if document.steps:
        return json.dumps(_Calls().contents(document.steps), ensure_ascii=True)
    topology = document.described or document.exported
    return json.dumps(_content(topology), ensure_ascii=True) if topology else ""


class _Calls:
    """The contents of calls. A result is named by the position of its call, whatever its handle is."""

    def __init__(self) -> None:
        self._positions: dict[str, str] = {}

    def contents(self, steps: Iterable[Step], within: str = "", current: str = "") -> list[Any]:
        """Return the contents of calls in the branch `within`; the first is a call on `current`."""
        contents = []
        for number, step in enumerate(steps):
            on = current if step.input is None else self._position(step.input)
            current = f"{within}{number}"
            contents.append([on, self._operator(step, current)])
            if step.alias is not None:
                self._positions[step.alias] = current
        return contents

    def _operator(self, step: Step, position: str) -> list[Any]:
        operator = step.operator
        if isinstance(operator, Split):
            branches = [
                self._branch(branch, f"{position}.{number}")
                for number, branch in enumerate((*operator.branches, operator.default))
                if branch is not None
            ]
            return ["Split", operator.name, operator.default is not None, branches]
        other = getattr(operator, "other", None)
        return [*_content(operator, {"other": other and self._position(other)})]

    def _branch(self, branch: Branch, position: str) -> list[Any]:
        contents = self.contents(branch.then, f"{position}.", position)
        if branch.alias is not None:
            self._positions[branch.alias] = f"{position}.{len(contents) - 1}" if contents else position
        return [branch.name, branch.where and normalize_expression(branch.where), contents]

    def _position(self, handle: str) -> str:
        return self._positions.get(handle, handle)


def _content(value: object, replaced: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return a value as JSON; `replaced` are fields that have another value."""
    match value:
        case Enum():
            return value.name
        case None | str() | int() | float():
            return value
        case Mapping():
            return sorted([str(key), _content(each)] for key, each in value.items())
        case frozenset():
            return sorted(map(_content, value), key=json.dumps)
        case tuple() | list():
            return [_content(each) for each in _with_content(value)]
        case _:
            return [type(value).__name__, *_fields(value, replaced or {})]


def _fields(value: object, replaced: Mapping[str, object]) -> list[Any]:
    """Return name and content of the fields that are set, so a field that a later version adds is ignored."""
    fields = []
    for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # all values of a document are of attrs
        found = replaced.get(field.name, getattr(value, field.name))
        if isinstance(found, tuple):
            found = tuple(_with_content(found))
        elif isinstance(found, str) and field.name in _EXPRESSIONS:
            found = normalize_expression(found)
        is_set = found != field.default and found not in ((), {}, frozenset())
        if is_set and not isinstance(found, _NO_CONTENT):
            fields.append([field.name, _content(found)])
    return fields


def _with_content(values: Iterable[object]) -> Iterable[object]:
    return (each for each in values if not isinstance(each, _NO_CONTENT))
