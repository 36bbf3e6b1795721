"""Read YAML or JSON as values with locations and problems, and write documents as YAML.

Only mappings, lists and scalars are built, and without recursion: no text can exhaust the stack, and no tag
can name a class. What `document_yaml` writes, `read_yaml` reads as the same values.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from headwater.model.problems import Location, Problem, ProblemCode, shorten_text
from headwater.spec.locations import MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Position, RawDocument, Value
from headwater.spec.scalars import plain_scalar

_Loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader

_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def read_yaml(text: str, file: str) -> tuple[tuple[RawDocument, ...], tuple[Problem, ...]]:
    """Return the non-empty documents of `text` and problems; no document if the YAML is invalid."""
    tree = _TreeBuilder(file)
    try:
        tree.read(yaml.parse(_joined_surrogates(text) if file.endswith(".json") else text, Loader=_Loader))
    except _ReadingStopped:
        return (), tuple(tree.problems)
    except yaml.YAMLError as error:
        return (), (*tree.problems, _yaml_error(error, text, file))
    except UnicodeEncodeError as error:
        at = _location_at(text, error.start, file)
        return (), (
            _syntax_error(
                at,
                "The text contains half of a character.",
                f"`{ascii(text[error.start])[1:-1]}`",
            ),
        )
    return tuple(raw for raw in tree.documents if raw.data is not None or raw.position.refused), tuple(
        tree.problems
    )


def _yaml_error(error: yaml.YAMLError, text: str, file: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        character = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
        at = _location_at(text, character.start(), file) if character else Location(file)
        return _syntax_error(
            at,
            "The text contains a control character.",
            f"`{ascii(character.group())[1:-1]}`" if character else None,
            fix=_SAVE_AS_UTF_8 if character and character.group() == "\0" else _CHECK_LINE,
        )
    mark = getattr(error, "problem_mark", None)
    at = Location(file, mark.line + 1, mark.column + 1) if mark is not None else Location(file)
    if mark is not None and _is_tab(text, mark.line):
        return _syntax_error(
            at,
            "A line is indented with a tab.",
            "a tab",
            fix="Indent with spaces: YAML allows no tabs there.",
        )
    problem, context = getattr(error, "problem", None), getattr(error, "context", None)
    if _DESCRIBED.search(text):
        return _syntax_error(
            at,
            "The text of `Topology#describe()` is not YAML.",
            fix="Save the text as a file of its own, and name it: `describe: {file: orders.describe.txt}`. "
            "Or run `headwater import --describe FILE --application-id ID -o DOCUMENT`.",
        )
    return _syntax_error(
        at,
        f"The YAML is not valid: {problem or error}" + (f" ({context})." if context else "."),
        fix=_first_character_fix(str(problem), text, mark)
        or _CHECK_LINE + (_QUOTE if "flow" in str(context) else ""),
    )


_DESCRIBED = re.compile(r"^ *Sub-topology: \d+", re.MULTILINE)
_SAVE_AS_UTF_8 = "Save the file as UTF-8: null characters are in UTF-16 text and in binary files."
_CHECK_LINE = "Check this line and the one before: indentation, quotes, colons, brackets."
_QUOTE = " Put a value with brackets, braces or commas in quotes."


def _first_character_fix(problem: str, text: str, mark: Any) -> str:  # noqa: ANN401 - a mark of libyaml
    """Return the fix for a value that begins with a character that YAML reserves; empty for other errors."""
    if "cannot start any token" not in problem or mark is None:
        return ""
    character = text[mark.index : mark.index + 1].strip()
    return f"Put the value in quotes: it begins with `{character}`." if character else ""


def _is_tab(text: str, line: int) -> bool:
    """Return whether the indentation of a line, counted from 0, has a tab."""
    lines = text.split("\n")
    return line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]


def _location_at(text: str, index: int, file: str) -> Location:
    before = text[:index]
    return Location(file, before.count("\n") + 1, index - before.rfind("\n"))


def _joined_surrogates(text: str) -> str:
    """Replace pairs of surrogates: JSON escapes a character above U+FFFF as two, YAML as one."""

    def joined(match: re.Match[str]) -> str:
        high, low = int(match[2], 16), int(match[3], 16)
        return f"{match[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"

    return _SURROGATES.sub(joined, text)


class _ReadingStopped(Exception):  # noqa: N818 - a limit was reached; what was found so far is kept
    """A limit was reached."""


class _Open:
    """A mapping or a list whose end was not read yet. `key` is the key of the next value."""

    __slots__ = ("at", "items", "key", "key_at", "mapping", "positions", "refused")

    def __init__(self, *, is_mapping: bool, at: tuple[int, int], refused: bool) -> None:
        self.mapping: dict[str, Value] | None = {} if is_mapping else None
        self.items: list[Value] = []
        self.positions: dict[str, Position] | list[Position] = {} if is_mapping else []
        self.at = at
        self.refused = refused
        self.key: str | None = None
        self.key_at = (0, 0)


class _TreeBuilder:
    """Builds `documents` and `problems` from the events of one text."""

    def __init__(self, file: str) -> None:
        self.documents: list[RawDocument] = []
        self.problems: list[Problem] = []
        self._file = file
        self._open: list[_Open] = []
        self._nodes = 0
        self._anchors: set[str] = set()

    def read(self, events: Iterable[Event]) -> None:
        """Build until the last event; raises `_ReadingStopped` at a limit: see the last of `problems`."""
        for event in events:
            if isinstance(event, ScalarEvent):
                refused = self._enter(event, event.tag)
                value = plain_scalar(event.value) if event.implicit[0] else event.value
                self._add(value, event.value, _position_of(event), (), refused=refused)
            elif isinstance(event, CollectionStartEvent):
                self._start(event)
            elif isinstance(event, CollectionEndEvent):
                done = self._open.pop()
                self._add(
                    done.items if done.mapping is None else done.mapping,
                    "",
                    done.at,
                    done.positions,
                    refused=done.refused,
                )
            elif isinstance(event, AliasEvent):
                self._enter(event, None)
                self._add(None, "", _position_of(event), (), refused=True)

    def _enter(self, event: NodeEvent, tag: str | None) -> bool:
        """Count a node and report its tag and anchor; return whether its value is refused."""
        self._nodes += 1
        at = (
            Location(self._file, *_position_of(event))
            if self._nodes > MAX_NODES or event.anchor or tag
            else None
        )
        if at is None:
            return False
        if self._nodes > MAX_NODES:
            self._stop(_too_large(at, f"at most {MAX_NODES:,} values"))
        if tag:
            self._report(_tag_used(tag, at))
        if event.anchor:
            self._refuse_sharing(event, event.anchor, at)
        return bool(tag)

    def _refuse_sharing(self, event: NodeEvent, anchor: str, at: Location) -> None:
        """Report an anchor and all its aliases once: there may be thousands."""
        if anchor not in self._anchors:
            self._anchors.add(anchor)
            self._report(_anchor_or_alias(("*" if isinstance(event, AliasEvent) else "&") + anchor, at))

    def _start(self, event: CollectionStartEvent) -> None:
        refused = self._enter(event, event.tag)
        at = Location(self._file, *_position_of(event))
        if len(self._open) >= MAX_DEPTH:
            self._stop(_too_large(at, f"at most {MAX_DEPTH} levels of mappings and lists"))
        if self._open and self._open[-1].mapping is not None and self._open[-1].key is None:
            self._stop(_key_is_collection(at))
        self._open.append(
            _Open(is_mapping=isinstance(event, MappingStartEvent), at=_position_of(event), refused=refused)
        )

    def _add(
        self,
        value: Value,
        written: str,
        at: tuple[int, int],
        children: dict[str, Position] | list[Position] | tuple[()],
        *,
        refused: bool,
    ) -> None:
        if not self._open:
            self.documents.append(RawDocument(self._file, value, Position(*at, *at, children, refused)))
            return
        around = self._open[-1]
        if around.mapping is None:
            around.items.append(value)
            around.positions.append(Position(*at, *at, children, refused))  # type: ignore[union-attr]
        elif around.key is None:
            around.key, around.key_at = written, at
        else:
            key, around.key = around.key, None
            position = Position(*at, *around.key_at, children, refused)
            if key in around.mapping:
                first = around.positions[key].key_line  # type: ignore[call-overload]
                self._report(_repeated_key(key, first, Location(self._file, *around.key_at)))
            else:
                around.mapping[key] = value
                around.positions[key] = position  # type: ignore[call-overload]

    def _report(self, problem: Problem) -> None:
        self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise _ReadingStopped

    def _stop(self, problem: Problem) -> None:
        self.problems.append(problem)
        raise _ReadingStopped


def _position_of(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)


def _syntax_error(at: Location, summary: str, found: str | None = None, *, fix: str = _CHECK_LINE) -> Problem:
    """Return the problem of text that is not YAML."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=summary,
        expected="YAML 1.2 or JSON",
        found=found,
        why="Nothing after this location can be read.",
        fix=fix,
        location=at,
    )


def _key_is_collection(at: Location) -> Problem:
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary="A key must be text, not a mapping or a list.",
        expected="text",
        found="a mapping or a list",
        why="Nothing after this location can be read.",
        fix="Remove the `?` or the brackets. If it is a template, fill it in first.",
        location=at,
    )


def _repeated_key(key: str, first: int, at: Location) -> Problem:
    """Return the problem; `first` is the line of the first one."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The key `{shorten_text(key)}` is given twice.",
        expected="each key once",
        found=f"first on line {first}, again on line {at.line}",
        why="One of the two would silently have no effect.",
        fix="Remove one of them.",
        location=at,
    )


def _tag_used(name: str, at: Location) -> Problem:
    name = name.replace("tag:yaml.org,2002:", "!!")
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The tag `{shorten_text(name)}` is refused.",
        expected="no tags",
        found=f"`{shorten_text(name)}`",
        why="A document contains plain values only; a tag could construct any object.",
        fix="Remove the tag. Put a value that must stay text in quotes.",
        location=at,
    )


def _anchor_or_alias(sign: str, at: Location) -> Problem:
    """Return the problem of an anchor or an alias; `sign` includes its `&` or `*`."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The {'anchor' if sign[0] == '&' else 'alias'} `{shorten_text(sign)}` is refused.",
        expected="no anchors and no aliases",
        found=f"`{shorten_text(sign)}`",
        why="A few nested aliases can expand to billions of values, and they make a document hard to read.",
        fix=f"Replace each `*{shorten_text(sign[1:])}` by the value, and remove `&{shorten_text(sign[1:])}`.",
        location=at,
    )


def _too_large(at: Location, limit: str) -> Problem:
    return Problem(
        code=ProblemCode.DOCUMENT_TOO_LARGE,
        summary="The document is larger than any topology needs.",
        expected=limit,
        found="more",
        why="Reading more could use up the memory of this machine.",
        fix="Split it into one document per application.",
        location=at,
    )


class DocumentDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes neither anchors nor aliases, which documents cannot have; uses libyaml if available."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote a text that would be read as a number: YAML 1.2 has more numbers than PyYAML, such as 1e3."""
    style = None if isinstance(plain_scalar(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


DocumentDumper.add_representer(str, _represent_text)


def document_yaml(content: Mapping[str, Any], dumper: type[DocumentDumper] = DocumentDumper) -> str:
    """Return the content of a document as YAML; a subclass of the dumper may write some values otherwise."""
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n")  # libyaml's end after a block: users append sections
