"""Finds the lines of a `describe()` text between log prefixes and other output."""

import re
from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

from headwater.describe.damage import repair_text


class LineKind(Enum):
    """The kinds of lines."""

    TOPOLOGY = "Topologies:"
    SUBTOPOLOGY = "Sub-topology: <number>"
    SOURCE = "Source: <name> (topics: …)"
    PROCESSOR = "Processor: <name> (stores: […])"
    SINK = "Sink: <name> (topic: …)"
    CHILDREN = "--> <names>"
    PARENTS = "<-- <names>"


@attrs.frozen
class Line:
    """A line of the text; `number` starts at 1.

    `name` is that of the node, of the named topology, or the sub-topology's number. `detail` has the topics
    of a source, the stores of a processor, the keyword and target of a sink, the list of an arrow, or
    "global" for a global store. `is_broken`: only the start of the line has this kind. `is_prefixed`: other
    text precedes the line.
    """

    kind: LineKind
    number: int
    name: str = ""
    detail: str = ""
    is_broken: bool = False
    is_prefixed: bool = False


_KEYWORDS = {
    "Topologies:": LineKind.TOPOLOGY,
    "Sub-topologies:": LineKind.TOPOLOGY,
    "Topology:": LineKind.TOPOLOGY,
    "Sub-topology:": LineKind.SUBTOPOLOGY,
    "Source:": LineKind.SOURCE,
    "Processor:": LineKind.PROCESSOR,
    "Sink:": LineKind.SINK,
    "-->": LineKind.CHILDREN,
    "<--": LineKind.PARENTS,
}
_KEYWORD = re.compile(
    r"(?:^|(?<=[\s|>\]:\"']))(?:(Topologies:|Sub-topologies:|-->|<--)"
    r"|(Topology:|Sub-topology:|Source:|Processor:|Sink:)\s+)"
)
_OLD_FORM = re.compile(
    r"(?:^|(?<=[\s|>\]:\"']))(?:Source|Processor|Sink): ?[^\s(]+\((?:topics|stores|topic): .*\) (?:-->|<--) "
)
"""A line of Kafka Streams before 1.1: a node with its lists."""
_SUBTOPOLOGY = re.compile(r"(\d{1,9})( for global store\b.*)?")
_MOST_KEYWORDS = 8
"""The number of keywords that are tried as start of a line; a log prefix may contain some."""
_DETAILS: Mapping[LineKind, tuple[re.Pattern[str], str]] = {
    LineKind.SOURCE: (re.compile(r"\s+\(topics: ()"), ")"),
    LineKind.PROCESSOR: (re.compile(r"\s+\(stores:\s+\[()"), "])"),
    LineKind.SINK: (re.compile(r"\s+\((topic: |extractor class: )"), ")"),
}
"""The start and the end of the part after the name."""

_WRAPPED = frozenset(
    {LineKind.SOURCE, LineKind.PROCESSOR, LineKind.SINK, LineKind.CHILDREN, LineKind.PARENTS}
)
_NAMES = re.compile(r"[\w.\-]+(?:, [\w.\-]+)*,?", re.ASCII)
_NARROWEST = 60
"""The least width of a terminal that wraps lines."""
_LONGEST_WRAP = 20
"""The maximal number of lines that a wrapped line is read from."""

_LONGEST_EXTRACTOR = 50
"""The maximal number of lines of a topic name extractor's `toString()`."""


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of all descriptions in `text`, in order; other text is ignored."""
    raw = repair_text(text).split("\n")
    width = max(map(len, raw))
    index = 0
    while index < len(raw):
        line, taken = _line(raw, index, width)
        if line is not None:
            yield line
        index += taken


def old_form_line(text: str) -> int | None:
    """Return the number of the first line that Kafka Streams before 1.1 printed, None if there is none."""
    if ") -->" not in text and ") --&gt;" not in text:
        return None
    for number, line in enumerate(repair_text(text).split("\n"), start=1):
        if _OLD_FORM.search(line):
            return number
    return None


def _line(raw: list[str], index: int, width: int) -> tuple[Line | None, int]:
    """Return the line at `index`, if any, and the number of raw lines that it has.

    `width` is the length of the longest raw line.
    """
    text = raw[index].strip()
    if not text:
        return None, 1
    number = index + 1
    for count, found in enumerate(_KEYWORD.finditer(text)):
        if count == _MOST_KEYWORDS:
            break
        kind = _KEYWORDS[found[1] or found[2]]
        rest = _unquoted(text[found.end() :], text[: found.start()])
        if kind is LineKind.SINK and " (extractor class: " in rest and not rest.endswith(")"):
            more = _rest_of_extractor(raw, index)
            if more is not None:
                return _parsed(kind, number, "\n".join([rest, *more])), 1 + len(more)
        line, taken = _parsed(kind, number, rest), 1
        if kind in _WRAPPED and (line is None or _continues(line, raw, index, width)):
            line, taken = _unwrapped(kind, raw, index, rest, width) or (line, 1)
        if line is not None:
            return attrs.evolve(line, is_prefixed=found.start() > 0), taken
        if found.start() == 0 and kind is not LineKind.TOPOLOGY:
            return Line(kind, number, is_broken=True), 1
    return None, 1


def _unquoted(rest: str, prefix: str) -> str:
    """Return `rest` up to the quote that closes the one before it, as in the columns of an exported log."""
    quote = prefix.rstrip()[-1:]
    return rest.rpartition(quote)[0] if quote in {'"', "'"} and quote in rest else rest


def _continues(line: Line, raw: list[str], index: int, width: int) -> bool:
    """Return whether the next line continues a list of names: a terminal or mail program has wrapped it.

    The list ends with a comma, or fills the width of the text and names without indentation follow.
    """
    if line.kind not in {LineKind.CHILDREN, LineKind.PARENTS}:
        return False
    if line.detail.endswith(","):
        return True
    following = raw[index + 1].rstrip() if index + 1 < len(raw) else ""
    is_full = width >= _NARROWEST and len(raw[index]) == width
    return is_full and _NAMES.fullmatch(following) is not None


def _unwrapped(kind: LineKind, raw: list[str], index: int, rest: str, width: int) -> tuple[Line, int] | None:
    """Return the line together with the following ones that complete it, None if they do not."""
    ends_with_blank = raw[index].rstrip("\r\n")[-1:].isspace()
    for taken, raw_line in enumerate(raw[index + 1 : index + _LONGEST_WRAP], start=2):
        text = raw_line.strip()
        if not text or _KEYWORD.search(text):
            return None
        for gap in (" ",) if ends_with_blank or rest.endswith(",") else ("", " "):
            line = _parsed(kind, index + 1, f"{rest}{gap}{text}")
            if line is not None and not _continues(line, raw, index + taken - 1, width):
                return line, taken
        rest = f"{rest}{' ' if ends_with_blank or rest.endswith(',') else ''}{text}"
        ends_with_blank = raw_line.rstrip("\r\n")[-1:].isspace()
    return None


def _rest_of_extractor(raw: list[str], index: int) -> list[str] | None:
    """Return the further lines of an extractor's text, up to the closing parenthesis before the arrow."""
    for end in range(index + 1, min(index + _LONGEST_EXTRACTOR, len(raw) - 1)):
        if raw[end].rstrip().endswith(")") and "<--" in raw[end + 1]:
            return [*raw[index + 1 : end], raw[end].rstrip()]
        if "<--" in raw[end]:
            break
    return None


def _parsed(kind: LineKind, number: int, rest: str) -> Line | None:
    if kind is LineKind.TOPOLOGY:
        return Line(kind, number, rest[:-1]) if rest.endswith(":") else None if rest else Line(kind, number)
    if kind is LineKind.SUBTOPOLOGY:
        found = _SUBTOPOLOGY.fullmatch(rest)
        return found and Line(kind, number, str(int(found[1])), "global" if found[2] else "")
    if kind in {LineKind.CHILDREN, LineKind.PARENTS}:
        return Line(kind, number, detail=rest.strip()) if rest[:1].isspace() and rest.strip() else None
    opening, closing = _DETAILS[kind]
    found = opening.search(rest)
    if found is None or not found.start() or not rest.endswith(closing, found.end()):
        return None
    detail = rest[found.end() : len(rest) - len(closing)]
    return Line(kind, number, rest[: found.start()], (found[1] or "") + detail)
