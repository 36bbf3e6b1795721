"""Where each value of a document was written: a tree of places beside the tree of values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs

from infra.model.problems import Location

PathPart = str | int
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"


class Place(NamedTuple):
    """A value's place. `line` and `column` count from 1, 0 = unknown; in a list the key's are the value's.

    `children` are the places of a mapping's values by key, of a list's by index. `refused` marks a value that
    could not be taken as it stands (an alias, a tag): complaints about its stand-in would mislead.
    """

    line: int = 0
    column: int = 0
    key_line: int = 0
    key_column: int = 0
    children: "Mapping[str, Place] | Sequence[Place]" = ()
    refused: bool = False

    def child(self, part: PathPart) -> "Place":
        """The place of a part; where that was not written, this place."""
        children = self.children
        if isinstance(children, Mapping):
            return children.get(part, self) if isinstance(part, str) else self
        return children[part] if isinstance(part, int) and part < len(children) else self


NOWHERE = Place()


@attrs.frozen
class RawDocument:
    """One document as read. `data` is a `Value`, typed openly because everyone looks into it."""

    file: str
    data: Any
    place: Place

    def location(self, path: Iterable[PathPart], *, at_key: bool = False) -> Location | None:
        """Where the value (or its key) at `path` stands; None in what has been refused already.

        A path that leads beyond what was written ends at the last place that exists.
        """
        parts = tuple(path)
        place = self.place
        for part in parts:
            if place.refused:
                return None
            place = place.child(part)
        if place.refused:
            return None
        line, column = (place.key_line, place.key_column) if at_key else (place.line, place.column)
        return Location(self.file, line, column, pointer(parts))


def pointer(path: Iterable[PathPart]) -> str:
    """The RFC 6901 JSON pointer of `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
