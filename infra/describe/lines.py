"""Finds the lines of a `describe()` text between log prefixes and other output."""

import re
from collections.abc import Iterator, Mapping
from enum import Enum

import attrs


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
    "Topology: ": LineKind.TOPOLOGY,
    "Sub-topology: ": LineKind.SUBTOPOLOGY,
    "Source: ": LineKind.SOURCE,
    "Processor: ": LineKind.PROCESSOR,
    "Sink: ": LineKind.SINK,
    "-->": LineKind.CHILDREN,
    "<--": LineKind.PARENTS,
}
_KEYWORD = re.compile(r"(?:^|(?<=[\s|>\]:\"']))(?:" + "|".join(map(re.escape, _KEYWORDS)) + ")")
_COLOR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_SUBTOPOLOGY = re.compile(r"(\d{1,9})( for global store\b.*)?")
_MOST_KEYWORDS = 8
"""The number of keywords that are tried as start of a line; a log prefix may contain some."""
_DETAILS: Mapping[LineKind, tuple[re.Pattern[str], str]] = {
    LineKind.SOURCE: (re.compile(r" \(topics: ()"), ")"),
    LineKind.PROCESSOR: (re.compile(r" \(stores: \[()"), "])"),
    LineKind.SINK: (re.compile(r" \((topic: |extractor class: )"), ")"),
}
"""The start and the end of the part after the name."""

_LONGEST_EXTRACTOR = 50
"""The maximal number of lines of a topic name extractor's `toString()`."""


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of all descriptions in `text`, in order; other text is ignored."""
    raw = _unescaped(_COLOR.sub("", text)).split("\n")
    index = 0
    while index < len(raw):
        line, taken = _line(raw, index)
        if line is not None:
            yield line
        index += taken


def _unescaped(text: str) -> str:
    """Unescape a text that was copied from HTML source or logged as JSON."""
    if "--&gt;" in text:
        text = text.replace("--&gt;", "-->").replace("&lt;--", "<--").replace("&amp;", "&")
    if "\\n" in text and re.search(r"Topologies:\\n|Topology: [^\n]*?:\\n", text):
        text = text.replace("\\n", "\n").replace("\\r", "").replace("\\t", "\t").replace('\\"', '"')
    return text


def _line(raw: list[str], index: int) -> tuple[Line | None, int]:
    """Return the line at `index`, if any, and the number of raw lines that it has."""
    text = raw[index].strip()
    if not text:
        return None, 1
    number = index + 1
    for count, found in enumerate(_KEYWORD.finditer(text)):
        if count == _MOST_KEYWORDS:
            break
        kind = _KEYWORDS[found.group()]
        rest = text[found.end() :]
        if kind is LineKind.SINK and " (extractor class: " in rest and not rest.endswith(")"):
            more = _rest_of_extractor(raw, index)
            if more is not None:
                return _parsed(kind, number, "\n".join([rest, *more])), 1 + len(more)
        line = _parsed(kind, number, rest)
        if line is not None:
            return attrs.evolve(line, is_prefixed=found.start() > 0), 1
        if found.start() == 0 and kind is not LineKind.TOPOLOGY:
            return Line(kind, number, is_broken=True), 1
    return None, 1


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
