"""Finds the lines of a `describe()` text between log prefixes and other output, and repairs damaged lines.

Each repair leaves an undamaged text as it is.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

_LOGGER = re.compile(r" \((?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?::\d+)?\)[ \t\r]*$", re.MULTILINE)
"""The logger at the end of a line, as the log pattern of Kafka's distribution writes it."""
_FEWEST_LOGGED = 3
"""The number of lines with the same logger from which on each line was logged by itself."""
_MOST_ESCAPES = 3
"""How often a text may have been escaped: JSON in JSON, HTML in HTML."""
_COLOR = re.compile(
    r"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e|\^\[)\[[0-?]*[ -/]*[@-~]"
    r"|\[\d{0,3}(?:;\d{1,3}){0,4}m(?=[^\w\].]|Topolog|Sub-topology|Source|Processor|Sink|$)",
    re.MULTILINE,
)
"""Control sequences of terminals, also with an escaped or a lost escape character."""
_BLANKS = str.maketrans(
    {**dict.fromkeys("\u00a0\u2007\u202f\u3000", " "), **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff")}
)
_ARROWS = (
    (re.compile(r"(?:[\u2010-\u2015\u2212]{1,2}|-[\u2010-\u2015\u2212]|[\u2010-\u2015\u2212]-)>"), "-->"),
    (re.compile(r"<(?:[\u2010-\u2015\u2212]{1,2}|-[\u2010-\u2015\u2212]|[\u2010-\u2015\u2212]-)"), "<--"),
    (re.compile(r"^(\s*)[\u2192\u27f6](?=\s)", re.MULTILINE), r"\1-->"),
    (re.compile(r"^(\s*)[\u2190\u27f5](?=\s)", re.MULTILINE), r"\1<--"),
)
_LINE_END = re.compile(r"\r+\n|\r")
"""A line end of Windows, of a terminal, or a line end that was converted twice."""
_LINE_TAG = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|pre)>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|article|b|blockquote|body|code|div|em|font|head|html|i|li|main|ol|p|pre|samp|section|small"
    r"|span|strong|table|tbody|td|th|tr|tt|u|ul)(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_HTML = re.compile(r"</[a-z]{1,10}\s*>|<br\b", re.IGNORECASE)
_ESCAPED_ARROW = re.compile(r"--&(?:amp;)*(?:gt|#62|#x3e);", re.IGNORECASE)
_ESCAPED_LINE = re.compile(r"Topologies:\\+n|Topology: [^\n]*?:\\+n|Sub-topology: \d+[^\n]{0,60}?\\+n")
_MARKDOWN = re.compile(r"\((?:topics|stores): \\\[")
"""A bracket that is escaped for Markdown: no topic and no store has it in its name."""
_MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ONE_LINE = re.compile(r"Sub-topology: \d{1,9}(?: for global store \([^()\n]*\))?[ \t]+Source: ")
"""What is on two lines of an undamaged text: a viewer of logs replaced the line ends by blanks."""
_PART = re.compile(r"[ \t]+(?=(?:Sub-topology: \d|Source: |Processor: |Sink: |--> |<-- ))")
_PARTS = ("Topologies:", "Topology: ", "Sub-topology: ", "Source: ", "Processor: ", "Sink: ", "-->", "<--")


def repair_text(text: str) -> str:
    """Return `text` without the damage that copying does to a description; other text is unchanged."""
    text = _json_text(_LINE_END.sub("\n", text))
    text = _unescape_markdown(_unescape_text(_COLOR.sub("", text)))
    text = _without_html(text)
    text = _without_loggers(_COLOR.sub("", text.translate(_BLANKS)))
    for pattern, arrow in _ARROWS:
        text = pattern.sub(arrow, text)
    return _split_parts(text)


def _unescape_markdown(text: str) -> str:
    return _MARKDOWN_ESCAPE.sub(r"\1", text) if _MARKDOWN.search(text) else text


def _split_parts(text: str) -> str:
    """Return the text with line ends before each part of the lines that have a whole description."""
    if not _ONE_LINE.search(text):
        return text
    return "\n".join(_PART.sub("\n", line) if _ONE_LINE.search(line) else line for line in text.split("\n"))


def _json_text(text: str) -> str:
    """Return the strings of a JSON text, or of each line of a log in JSON, that have parts of descriptions.

    Spring's and Quarkus' endpoints return descriptions in JSON.
    """
    for _ in range(_MOST_ESCAPES):
        found = _strings_in(text)
        if not found:
            break
        text = "\n".join(found)
    if '{"' not in text:
        return text
    return "\n".join(_json_line(line) for line in text.split("\n"))


def _strings_in(text: str) -> list[str]:
    if text.lstrip()[:1] not in {"[", "{", '"'} or not _has_part(text):
        return []
    try:
        return [each for each in _find_strings(json.loads(text)) if _has_part(each)]
    except (ValueError, RecursionError):
        return []


def _json_line(line: str) -> str:
    start = line.find('{"')
    if start < 0 or not _has_part(line):
        return line
    found = _strings_in(line[start:].strip())
    return "\n".join(each.rstrip("\r\n") for each in found) if found else line


def _find_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _find_strings(each)
    elif isinstance(value, dict):
        yield from _find_strings(list(value.values()))


def _has_part(text: str) -> bool:
    return any(part in text for part in _PARTS)


def _unescape_text(text: str) -> str:
    r"""Return the text with line ends instead of `\n`, as in the literals of programs."""
    for _ in range(_MOST_ESCAPES):
        if not _ESCAPED_LINE.search(text):
            break
        text = text.replace("\\\\", "\\").replace("\\r", "").replace("\\n", "\n")
        text = text.replace("\\t", "\t").replace('\\"', '"')
        text = re.sub(r"\\u003[eE]", ">", re.sub(r"\\u003[cC]", "<", text))
    return text


def _without_loggers(text: str) -> str:
    found = Counter(each.group() for each in _LOGGER.finditer(text))
    repeated = {logger for logger, count in found.items() if count >= _FEWEST_LOGGED}
    return _LOGGER.sub(lambda each: "" if each.group() in repeated else each.group(), text)


def _without_html(text: str) -> str:
    for _ in range(_MOST_ESCAPES):
        if _HTML.search(text):
            text = _TAG.sub("", _LINE_TAG.sub("\n", text))
        if not _ESCAPED_ARROW.search(text):
            break
        text = html.unescape(text)
    return text


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

    `name` is the name of the node or of the named topology, or the sub-topology's number. `detail` has the
    topics of a source, the stores of a processor, the keyword and target of a sink, the list of an arrow, or
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


def description_lines(text: str) -> Iterator[Line]:
    """Yield the lines of all descriptions in `text`, in order; other text is ignored."""
    raw = repair_text(text).split("\n")
    width = max(map(len, raw))
    index = 0
    while index < len(raw):
        line, taken = _find_line(raw, index, width)
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


def _find_line(raw: list[str], index: int, width: int) -> tuple[Line | None, int]:
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
        rest = _unquote_text(text[found.end() :], text[: found.start()])
        if kind is LineKind.SINK and " (extractor class: " in rest and not rest.endswith(")"):
            more = _rest_of_extractor(raw, index)
            if more is not None:
                return _parse_line(kind, number, "\n".join([rest, *more])), 1 + len(more)
        line, taken = _parse_line(kind, number, rest), 1
        if kind in _WRAPPED and (line is None or _is_continued(line, raw, index, width)):
            line, taken = _unwrap_line(kind, raw, index, rest, width) or (line, 1)
        if line is not None:
            return attrs.evolve(line, is_prefixed=found.start() > 0), taken
        if found.start() == 0 and kind is not LineKind.TOPOLOGY:
            return Line(kind, number, is_broken=True), 1
    return None, 1


def _unquote_text(rest: str, prefix: str) -> str:
    """Return `rest` up to the quote that closes the one before it, as in the columns of an exported log."""
    quote = prefix.rstrip()[-1:]
    return rest.rpartition(quote)[0] if quote in {'"', "'"} and quote in rest else rest


def _is_continued(line: Line, raw: list[str], index: int, width: int) -> bool:
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


def _unwrap_line(
    kind: LineKind, raw: list[str], index: int, rest: str, width: int
) -> tuple[Line, int] | None:
    """Return the line together with the following ones that complete it, None if they do not."""
    ends_with_blank = raw[index].rstrip("\r\n")[-1:].isspace()
    for taken, raw_line in enumerate(raw[index + 1 : index + _LONGEST_WRAP], start=2):
        text = raw_line.strip()
        if not text or _KEYWORD.search(text):
            return None
        for gap in (" ",) if ends_with_blank or rest.endswith(",") else ("", " "):
            line = _parse_line(kind, index + 1, f"{rest}{gap}{text}")
            if line is not None and not _is_continued(line, raw, index + taken - 1, width):
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


def _parse_line(kind: LineKind, number: int, rest: str) -> Line | None:
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
