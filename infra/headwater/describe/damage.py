"""Repairs texts that were copied from web pages, JSON, terminals and word processors.

Each repair leaves an undamaged text as it is.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator

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
_LINE_TAG = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|pre)>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|article|b|blockquote|body|code|div|em|font|head|html|i|li|main|ol|p|pre|samp|section|small"
    r"|span|strong|table|tbody|td|th|tr|tt|u|ul)(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_HTML = re.compile(r"</[a-z]{1,10}\s*>|<br\b", re.IGNORECASE)
_ESCAPED_ARROW = re.compile(r"--&(?:amp;)*(?:gt|#62|#x3e);", re.IGNORECASE)
_ESCAPED_LINE = re.compile(r"Topologies:\\+n|Topology: [^\n]*?:\\+n|Sub-topology: \d+[^\n]{0,60}?\\+n")
_PARTS = ("Topologies:", "Topology: ", "Sub-topology: ", "Source: ", "Processor: ", "Sink: ", "-->", "<--")


def repair_text(text: str) -> str:
    """Return `text` without the damage that copying does to a description; other text is unchanged."""
    text = _json_text(text)
    text = _unescaped(_COLOR.sub("", text))
    text = _without_html(text)
    text = _without_loggers(_COLOR.sub("", text.translate(_BLANKS)))
    for pattern, arrow in _ARROWS:
        text = pattern.sub(arrow, text)
    return text


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
        return [each for each in _strings(json.loads(text)) if _has_part(each)]
    except (ValueError, RecursionError):
        return []


def _json_line(line: str) -> str:
    start = line.find('{"')
    if start < 0 or not _has_part(line):
        return line
    found = _strings_in(line[start:].strip())
    return "\n".join(each.rstrip("\r\n") for each in found) if found else line


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))


def _has_part(text: str) -> bool:
    return any(part in text for part in _PARTS)


def _unescaped(text: str) -> str:
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
