"""The content of a document's topology, as text that is the same if the document declares the same."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

from headwater.model.problems import Location, Problem
from headwater.model.topology import TopologyDocument, UnknownDetails

_NO_CONTENT = (Location, Problem, UnknownDetails)


def topology_content(document: TopologyDocument | None) -> str:
    """Return the calls, the described nodes or the exported nodes of a document, empty if it has none.

    Locations in the file and defaults have no part in it.
    """
    if document is None:
        return ""
    topology = document.steps or document.described or document.exported
    return json.dumps(_content(topology), ensure_ascii=True) if topology else ""


def _content(value: object) -> Any:  # noqa: ANN401 - JSON
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
            return [_content(each) for each in value if not isinstance(each, _NO_CONTENT)]
        case _:
            return [type(value).__name__, *_fields(value)]


def _fields(value: object) -> list[Any]:
    """Return name and content of the fields that are set, so a field that a later version adds is ignored."""
    fields = []
    for field in attrs.fields(type(value)):  # type: ignore[arg-type]  # all values of a document are of attrs
        found = getattr(value, field.name)
        is_set = found != field.default and found not in ((), {}, frozenset())
        if is_set and not isinstance(found, _NO_CONTENT):
            fields.append([field.name, _content(found)])
    return fields
