"""The events of a YAML text → plain values with their places.

Nothing is built but mappings, lists and scalars, without recursion: no text can exhaust the stack, and no tag
can name a class.
"""

from collections.abc import Iterable

from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from infra.model.problems import Location, Problem
from infra.spec import yaml_faults as faults
from infra.spec.limits import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS
from infra.spec.places import Place, RawDocument, Value
from infra.spec.scalars import plain_scalar


class ReadingStopped(Exception):  # noqa: N818 - a limit was reached; what was found so far is kept
    """Ends the reading of one text."""


class _Open:
    """A mapping or a list whose end has not come yet. `key` is the mapping's key that waits for its value."""

    __slots__ = ("at", "items", "key", "key_at", "mapping", "places", "refused")

    def __init__(self, *, is_mapping: bool, at: tuple[int, int], refused: bool) -> None:
        self.mapping: dict[str, Value] | None = {} if is_mapping else None
        self.items: list[Value] = []
        self.places: dict[str, Place] | list[Place] = {} if is_mapping else []
        self.at = at
        self.refused = refused
        self.key: str | None = None
        self.key_at = (0, 0)


class TreeBuilder:
    """Takes the events of one text; `documents` and `problems` hold what it has come to."""

    def __init__(self, file: str) -> None:
        self.documents: list[RawDocument] = []
        self.problems: list[Problem] = []
        self._file = file
        self._open: list[_Open] = []
        self._nodes = 0
        self._anchors: set[str] = set()

    def read(self, events: Iterable[Event]) -> None:
        """Build until the events end.

        Raises:
            ReadingStopped: a limit was reached; the last of `problems` names it.
        """
        for event in events:
            if isinstance(event, ScalarEvent):
                refused = self._enter(event, event.tag)
                value = plain_scalar(event.value) if event.implicit[0] else event.value
                self._add(value, event.value, _at(event), (), refused=refused)
            elif isinstance(event, CollectionStartEvent):
                self._start(event)
            elif isinstance(event, CollectionEndEvent):
                done = self._open.pop()
                self._add(
                    done.items if done.mapping is None else done.mapping,
                    "",
                    done.at,
                    done.places,
                    refused=done.refused,
                )
            elif isinstance(event, AliasEvent):
                self._enter(event, None)
                self._add(None, "", _at(event), (), refused=True)

    def _enter(self, event: NodeEvent, tag: str | None) -> bool:
        """Count a node and refuse what hangs on it; whether its value cannot be taken as it stands."""
        self._nodes += 1
        at = Location(self._file, *_at(event)) if self._nodes > MAX_NODES or event.anchor or tag else None
        if at is None:
            return False
        if self._nodes > MAX_NODES:
            self._stop(faults.too_large(at, f"at most {MAX_NODES:,} values"))
        if tag:
            self._report(faults.tag(tag, at))
        if event.anchor:
            self._refuse_sharing(event, event.anchor, at)
        return bool(tag)

    def _refuse_sharing(self, event: NodeEvent, anchor: str, at: Location) -> None:
        """Once for an anchor and all its aliases: there may be thousands."""
        if anchor not in self._anchors:
            self._anchors.add(anchor)
            self._report(faults.shared(("*" if isinstance(event, AliasEvent) else "&") + anchor, at))

    def _start(self, event: CollectionStartEvent) -> None:
        refused = self._enter(event, event.tag)
        at = Location(self._file, *_at(event))
        if len(self._open) >= MAX_DEPTH:
            self._stop(faults.too_large(at, f"at most {MAX_DEPTH} levels of mappings and lists"))
        if self._open and self._open[-1].mapping is not None and self._open[-1].key is None:
            self._stop(faults.key_is_collection(at))
        self._open.append(
            _Open(is_mapping=isinstance(event, MappingStartEvent), at=_at(event), refused=refused)
        )

    def _add(
        self,
        value: Value,
        written: str,
        at: tuple[int, int],
        children: dict[str, Place] | list[Place] | tuple[()],
        *,
        refused: bool,
    ) -> None:
        if not self._open:
            self.documents.append(RawDocument(self._file, value, Place(*at, *at, children, refused)))
            return
        around = self._open[-1]
        if around.mapping is None:
            around.items.append(value)
            around.places.append(Place(*at, *at, children, refused))  # type: ignore[union-attr]
        elif around.key is None:
            around.key, around.key_at = written, at
        else:
            key, around.key = around.key, None
            place = Place(*at, *around.key_at, children, refused)
            if key in around.mapping:
                first = around.places[key].key_line  # type: ignore[call-overload]
                self._report(faults.repeated_key(key, first, Location(self._file, *around.key_at)))
            else:
                around.mapping[key] = value
                around.places[key] = place  # type: ignore[call-overload]

    def _report(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise ReadingStopped

    def _stop(self, problem: Problem) -> None:
        self.problems.append(problem)
        raise ReadingStopped


def _at(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
