"""Where each value of a document was written: a tree of positions beside the tree of values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs

from infra.model.problems import Location

PathPart = str | int
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"


class Position(NamedTuple):
    """A value's position. `line` and `column` count from 1, 0 = unknown; in a list the key's are the value's.

    `children` are the positions of a mapping's values by key, of a list's by index. `refused` marks a value that
    could not be taken as it stands (an alias, a tag): complaints about its stand-in would mislead.
    """

    line: int = 0
    column: int = 0
    key_line: int = 0
    key_column: int = 0
    children: "Mapping[str, Position] | Sequence[Position]" = ()
    refused: bool = False

    def child(self, part: PathPart) -> "Position":
        """The position of a part; where that was not written, this position."""
        children = self.children
        if isinstance(children, Mapping):
            return children.get(part, self) if isinstance(part, str) else self
        return children[part] if isinstance(part, int) and part < len(children) else self


NO_POSITION = Position()


@attrs.frozen
class RawDocument:
    """One document as read. `data` is a `Value`, typed openly because everyone looks into it."""

    file: str
    data: Any
    position: Position

    def location(self, path: Iterable[PathPart], *, at_key: bool = False) -> Location | None:
        """Where the value (or its key) at `path` stands; None in what has been refused already.

        A path that leads beyond what was written ends at the last position that exists.
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
        return Location(self.file, line, column, pointer(parts))


def pointer(path: Iterable[PathPart]) -> str:
    """The RFC 6901 JSON pointer of `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
