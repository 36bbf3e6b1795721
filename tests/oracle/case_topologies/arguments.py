"""The arguments of an operator in `topology.txt`: words, functions, serdes, options, nested calls."""

import re
from collections.abc import Mapping

import attrs

from tests.oracle.case_topologies.expressions import Function

_SERDE = r"(?:[a-z]+(?:-windowed)?(?::\d+)?|session-windowed)"
_SERDES = re.compile(rf"\(\s*({_SERDE})\s*,\s*({_SERDE})(?:\s*,\s*{_SERDE})?\s*\)(?!\s*->)")
_FUNCTION = re.compile(r"(?:\([^()]*\)|[a-z]\w*)\s*->\s*")
_OPTION = re.compile(r"([A-Za-z][A-Za-z.-]*)=(?!=)")
_WORD = re.compile(r"[^\s\[\](){};]+")
_END_OF_FUNCTION = re.compile(
    rf"\s\s|\s+(?:{_OPTION.pattern}|window\s|remove\s|merge\s|->|{_SERDES.pattern}|\([^()]*\)\s*->|[a-z]\w*\s+->)"
)
_OPENING = {"(": ")", "[": "]", "{": "}"}


@attrs.frozen
class Arguments:
    """`branch_of` is what follows a bare `->` (the chain of a branch)."""

    words: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()
    serdes: tuple[str, str] | None = None
    options: Mapping[str, str] = attrs.field(factory=dict)
    nested: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    pattern: str | None = None
    branch_of: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Arguments":
        words: list[str] = []
        functions: list[Function] = []
        options: dict[str, str] = {}
        nested: list[str] = []
        lists: list[str] = []
        serdes: tuple[str, str] | None = None
        pattern = branch_of = None
        at = 0
        while (at := _skip_spaces(text, at)) < len(text):
            if text.startswith("->", at):
                branch_of, end = text[at + 2 :].strip(), len(text)
            elif found := _SERDES.match(text, at):
                serdes, end = (found[1], found[2]), found.end()
            elif found := _FUNCTION.match(text, at):
                end = _function_end(text, found.end())
                names = tuple(re.findall(r"\w+", found.group().partition("->")[0]))
                functions.append(Function(names, text[found.end() : end].strip()))
            elif found := _OPTION.match(text, at):
                end = _value_end(text, found.end())
                options[found[1]] = text[found.end() : end].strip()
            elif text[at] == "(":
                end = _closing(text, at) + 1
                nested.append(text[at + 1 : end - 1].strip())
            elif text[at] == "[":
                end = _closing(text, at) + 1
                lists.append(text[at:end])
            elif text[at] == "/" and (slash := text.find("/", at + 1)) > 0:
                closing = re.search(r"/(?=\s|$)", text[at + 1 :])
                end = at + 1 + closing.end() if closing else slash + 1
                pattern = text[at + 1 : end - 1]
            else:
                end = _value_end(text, at)
                words.append(text[at:end])
            at = end
        return cls(
            tuple(words), tuple(functions), serdes, options, tuple(nested), tuple(lists), pattern, branch_of
        )

    def names(self, key: str) -> list[str]:
        return list_items(self.options[key]) if key in self.options else []


def list_items(text: str) -> list[str]:
    """Return the items of `[a, b]` or `a`."""
    return [item.strip() for item in text.strip().strip("[]").split(",") if item.strip()]


def mapping_items(text: str) -> dict[str, str]:
    """Return the items of `{key: value, other: "v,w"}`."""
    found = re.findall(r"""([\w.-]+)\s*:\s*("[^"]*"|[^,}]+)""", text)
    return {key: value.strip().strip('"') for key, value in found}


def split_top(text: str, separator: str) -> list[str]:
    """Split at separators outside of quotes and brackets."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] == '"':
            at = _quote_end(text, at)
        elif text[at] in _OPENING:
            at = _closing(text, at)
        elif text[at] == separator:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [*parts, text[start:].strip()]


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _quote_end(text: str, at: int) -> int:
    end = text.find('"', at + 1)
    return len(text) - 1 if end < 0 else end


def _closing(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at = _quote_end(text, at)
        elif text[at] in _OPENING:
            depth += 1
        elif text[at] in _OPENING.values():
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text) - 1


def _function_end(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == '"':
            at = _quote_end(text, at)
        elif text[at] in _OPENING:
            at = _closing(text, at)
        elif text[at].isspace() and _END_OF_FUNCTION.match(text, at):
            return at
        at += 1
    return at


def _value_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace():
        if text[at] == '"':
            at = _quote_end(text, at)
        elif text[at] in _OPENING:
            at = _closing(text, at)
        at += 1
    return at
