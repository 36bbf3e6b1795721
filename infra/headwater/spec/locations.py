"""The position of each value in its file: a tree with the same structure as the values. Its largest sizes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs

from headwater.model.problems import Location

MAX_BYTES = 5 * 1024 * 1024
"""Size of one file; a larger one is refused before it is read."""
MAX_DEPTH = 60
"""Levels of nested mappings and lists."""
MAX_NODES = 200_000
"""Number of scalars, mappings and lists in one file."""
MAX_PROBLEMS = 100
"""Problems of one document; the others are not shown."""
PathPart = str | int
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"


class Position(NamedTuple):
    """A value's position. `line` and `column` count from 1, 0 = unknown; in a list the key has the value's.

    `children` are the positions of a mapping's values by key, of a list's items by index. `refused` marks a
    value that was replaced (an alias, a value with a tag): problems about its replacement would mislead.
    """

    line: int = 0
    column: int = 0
    key_line: int = 0
    key_column: int = 0
    children: "Mapping[str, Position] | Sequence[Position]" = ()
    refused: bool = False

    def child(self, part: PathPart) -> "Position":
        """Return the position of a part; if the part does not exist, this position."""
        children = self.children
        if isinstance(children, Mapping):
            return children.get(part, self) if isinstance(part, str) else self
        return children[part] if isinstance(part, int) and part < len(children) else self


NO_POSITION = Position()


@attrs.frozen
class RawDocument:
    """One document as read. `data` is a `Value`; its type is `Any` because all readers index into it."""

    file: str
    data: Any
    position: Position

    def section(self, name: str) -> Any:  # noqa: ANN401 - as `data`
        """Return a section of the document as read, such as `application`; None if it is missing."""
        return self.data.get(name) if isinstance(self.data, dict) else None

    def location(self, path: Iterable[PathPart], *, at_key: bool = False) -> Location | None:
        """Return the location of the value (or its key) at `path`; None within a refused value.

        A path that does not exist ends at its last existing part.
        """
        parts = tuple(path)
        position = self.position
        for part in parts:
            if position.refused:
                return None
            position = position.child(part)
        if position.refused:
            return None
        line, column = (
            (position.key_line, position.key_column) if at_key else (position.line, position.column)
        )
        return Location(self.file, line, column, json_pointer(parts))


def json_pointer(path: Iterable[PathPart]) -> str:
    """Return the RFC 6901 JSON pointer of `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a part of a document if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}
