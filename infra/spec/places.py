"""Where each value of a document was written: a tree of places beside the tree of values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from infra.model.problems import Location

PathPart = str | int


class Place(NamedTuple):
    """A value's place. `line` and `column` count from 1, 0 = unknown; those of its key are equal in a list.

    `children` are the places of a mapping's values by key, of a list's by index. `refused` marks a value that could not be
    taken as it stands (an alias, a tag): complaints about what stands in for it would mislead.
    """

    line: int = 0
    column: int = 0
    key_line: int = 0
    key_column: int = 0
    children: "Mapping[str, Place] | Sequence[Place]" = ()
    refused: bool = False


NOWHERE = Place()


@attrs.frozen
class RawDocument:
    """One document as read: plain values (`dict`, `list`, `str`, `int`, `float`, `bool`, None) and their places."""

    file: str
    data: Any
    place: Place

    def location(self, path: Iterable[PathPart], *, at_key: bool = False) -> Location | None:
        """The location of the value (or of its key) at `path`, None where the document itself was refused.

        A path that leads beyond what was written ends at the last place that exists.
        """
        parts = tuple(path)
        place = self.place
        for part in parts:
            if place.refused:
                return None
            place = _child(place, part) or place
        if place.refused:
            return None
        line, column = (place.key_line, place.key_column) if at_key else (place.line, place.column)
        return Location(self.file, line, column, pointer(parts))


def pointer(path: Iterable[PathPart]) -> str:
    """The RFC 6901 JSON pointer of `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _child(place: Place, part: PathPart) -> Place | None:
    children = place.children
    if isinstance(part, str):
        return children.get(part) if isinstance(children, Mapping) else None
    return children[part] if isinstance(children, Sequence) and part < len(children) else None
