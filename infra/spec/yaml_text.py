"""YAML or JSON text → plain values with their places, without ever building an object that the text asks for.

The events of libyaml are read one by one, so neither depth nor size of a text can exhaust the stack or the memory.
"""

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from infra.model.problems import Location, Problem, ProblemCode
from infra.spec.limits import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS
from infra.spec.places import Place, RawDocument
from infra.spec.scalars import plain_scalar

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Frame:
    """A mapping or list that is still open."""

    __slots__ = ("data", "event", "key", "key_at", "places", "refused")

    def __init__(self, event: Any, *, refused: bool) -> None:
        self.event = event
        self.refused = refused
        is_mapping = isinstance(event, MappingStartEvent)
        self.data: Any = {} if is_mapping else []
        self.places: Any = {} if is_mapping else []
        self.key: str | None = None
        self.key_at = (0, 0)


class _Refused(Exception):  # noqa: N818 - it ends the reading of one text, nothing more
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class _Reader:
    """Builds the documents of one text from its events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.documents: list[RawDocument] = []
        self.problems: list[Problem] = []
        self.stack: list[_Frame] = []
        self.nodes = 0

    def read(self, events: Iterator[Any]) -> None:
        for event in events:
            if isinstance(event, ScalarEvent):
                self._count(event)
                refused = self._refuses_properties(event)
                self._add(plain_scalar(event.value) if event.implicit[0] else event.value, event, (), refused=refused)
            elif isinstance(event, MappingStartEvent | SequenceStartEvent):
                self._open(event)
            elif isinstance(event, AliasEvent):
                self._count(event)
                self._complain(event, f"The alias `*{event.anchor}` is refused.", "no aliases", _NO_ALIASES, _SPELL_OUT)
                self._add(None, event, (), refused=True)
            elif not isinstance(event, DocumentStartEvent | DocumentEndEvent) and self.stack:
                frame = self.stack.pop()
                self._add(frame.data, frame.event, frame.places, refused=frame.refused)

    def _open(self, event: Any) -> None:
        self._count(event)
        if len(self.stack) >= MAX_DEPTH:
            raise _Refused(_too_large(self._at(event), f"at most {MAX_DEPTH} levels", "more levels"))
        if self.stack and isinstance(self.stack[-1].data, dict) and self.stack[-1].key is None:
            raise _Refused(_syntax(self._at(event), "A key must be text, not a mapping or a list.", "text", "a collection"))
        self.stack.append(_Frame(event, refused=self._refuses_properties(event)))

    def _add(self, value: Any, event: Any, children: Any, *, refused: bool) -> None:
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        if not self.stack:
            self.documents.append(RawDocument(self.file, value, Place(line, column, line, column, children, refused)))
            return
        frame = self.stack[-1]
        if isinstance(frame.data, list):
            frame.data.append(value)
            frame.places.append(Place(line, column, line, column, children, refused))
        elif frame.key is None:
            frame.key = event.value if isinstance(event, ScalarEvent) else ""
            frame.key_at = (line, column)
        else:
            place = Place(line, column, *frame.key_at, children, refused)
            self._put(frame, frame.key, value, place)
            frame.key = None

    def _put(self, frame: _Frame, key: str, value: Any, place: Place) -> None:
        if key not in frame.data:
            frame.data[key] = value
            frame.places[key] = place
            return
        first = frame.places[key]
        self._report(
            Problem(
                code=ProblemCode.YAML_SYNTAX,
                summary=f"The key `{_short(key)}` is given twice.",
                expected="each key once",
                found=f"first on line {first.key_line}, again on line {place.key_line}",
                why="One of the two would silently have no effect.",
                fix="Remove one of them.",
                location=Location(self.file, place.key_line, place.key_column),
            )
        )

    def _refuses_properties(self, event: Any) -> bool:
        if event.tag is not None:
            self._complain(
                event,
                f"The tag `{_short(event.tag)}` is refused.",
                "no tags",
                "A document holds plain values only; a tag could ask for anything to be built from them.",
                "Remove the tag; put a value that is to stay text into quotes.",
            )
        if event.anchor is not None:
            self._complain(event, f"The anchor `&{event.anchor}` is refused.", "no anchors", _NO_ALIASES, _SPELL_OUT)
        return event.tag is not None

    def _complain(self, event: Any, summary: str, expected: str, why: str, fix: str) -> None:
        self._report(
            Problem(
                code=ProblemCode.YAML_SYNTAX,
                summary=summary,
                expected=expected,
                why=why,
                fix=fix,
                location=self._at(event),
            )
        )

    def _report(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) > MAX_PROBLEMS:
            raise _Refused(_too_large(problem.location, f"at most {MAX_PROBLEMS} problems", "more problems"))

    def _count(self, event: Any) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _Refused(_too_large(self._at(event), f"at most {MAX_NODES} values", "more values"))

    def _at(self, event: Any) -> Location:
        return Location(self.file, event.start_mark.line + 1, event.start_mark.column + 1)


_NO_ALIASES = "A few nested aliases can stand for billions of values, and a reader must look for what each means."
_SPELL_OUT = "Write the value out where it is used."


def read_yaml(text: str, file: str) -> tuple[tuple[RawDocument, ...], tuple[Problem, ...]]:
    """All documents of `text` (separated by `---`; empty ones are left out) and what is wrong with its YAML."""
    reader = _Reader(file)
    try:
        reader.read(yaml.parse(text, Loader=_Loader))
    except _Refused as refused:
        return (), (*reader.problems, refused.problem)
    except yaml.YAMLError as error:
        return (), (*reader.problems, _unreadable(error, file))
    except UnicodeEncodeError as error:  # half of a surrogate pair in a text from elsewhere
        return (), (_syntax(Location(file), "The text is not valid Unicode.", "Unicode text", repr(error.object[error.start])),)
    return tuple(raw for raw in reader.documents if raw.data is not None or raw.place.refused), tuple(reader.problems)


def _unreadable(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    if mark is None:  # a character that YAML does not allow
        return _syntax(Location(file), f"The text is not YAML: {getattr(error, 'reason', error)}.", "printable text", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    context = getattr(error, "context", None)
    summary = f"The YAML is broken: {problem}" + (f" ({context})." if context else ".")
    return _syntax(Location(file, mark.line + 1, mark.column + 1), summary, "YAML 1.2 or JSON", None)


def _syntax(location: Location, summary: str, expected: str, found: str | None) -> Problem:
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=summary,
        expected=expected,
        found=found,
        why="Nothing after this place can be understood.",
        fix="Look at this line and the one before: indentation, quotes, colons, brackets.",
        location=location,
    )


def _too_large(location: Location | None, expected: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.DOCUMENT_TOO_LARGE,
        summary="The document is larger than any topology needs.",
        expected=expected,
        found=found,
        why="Reading it could exhaust this machine.",
        fix="Split it into one document an application.",
        location=location,
    )


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
