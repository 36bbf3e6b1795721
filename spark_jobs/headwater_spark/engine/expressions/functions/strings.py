"""Strings. Positions start at 1, lengths are in characters."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from headwater_spark.engine.expressions.casts import to_text, to_whole
from headwater_spark.engine.expressions.faults import (
    LONGEST_RESULT,
    EvaluationError,
    check_characters,
    check_elements,
)
from headwater_spark.engine.expressions.functions.table import Function, lenient, strict
from headwater_spark.engine.expressions.operations import no_fit
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.java_texts import write_utf8


def concat(*values: Value) -> Value:
    """Concatenate strings, or arrays."""
    try:
        joined = "".join(values)
    except TypeError:  # not all are strings
        return _concat_any(values)
    if len(joined) > LONGEST_RESULT:  # each part is shorter
        check_characters(len(joined), "concat")
    return joined


def _concat_any(values: Sequence[Value]) -> Value:
    if all(type(value) is list for value in values):
        check_elements(sum(map(len, values)), "concat")
        return [each for value in values for each in value]
    joined = "".join(map(to_text, values))
    check_characters(len(joined), "concat")
    return joined


def concat_ws(separator: Value, *values: Value) -> Value:
    """Join strings and arrays of strings; ignore nulls."""
    if separator is None:
        return None
    parts: list[str] = []
    for value in values:
        members = value if type(value) is list else [value]
        parts += [to_text(member) for member in members if member is not None]
    return join_texts(to_text(separator), parts, "concat_ws")


def join_texts(separator: str, parts: Sequence[str], function: str) -> str:
    """Join strings; raise EvaluationError if the result would be too long."""
    check_characters(sum(map(len, parts)) + len(separator) * len(parts), function)
    return separator.join(parts)


def length(value: Value) -> Value:
    return len(value) if type(value) is bytes else len(to_text(value))


def substring(value: Value, position: Value, count: Value = None) -> Value:
    """Return a substring. Position 0 is the first character, as is 1; negative positions are from the end."""
    text = value if type(value) is bytes else to_text(value)
    start = to_whole(position)
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if count is None else first + to_whole(count)
    return text[max(0, first) : max(0, last)]


def left(value: Value, count: Value) -> Value:
    return to_text(value)[: max(0, to_whole(count))]


def right(value: Value, count: Value) -> Value:
    number = to_whole(count)
    return to_text(value)[-number:] if number > 0 else ""


def substring_index(value: Value, separator: Value, count: Value) -> Value:
    text, between, number = to_text(value), to_text(separator), to_whole(count)
    if not between or number == 0:
        return ""
    parts = text.split(between)
    return between.join(parts[:number] if number > 0 else parts[number:])


_STRIPS = {"trim": "strip", "btrim": "strip", "ltrim": "lstrip", "rtrim": "rstrip"}
"""Function of SQL → method of `str`."""


def create_trim(how: str) -> Value:
    """Return the function `trim`, `btrim`, `ltrim` or `rtrim`."""

    def trim(value: Value, characters: Value = " ") -> Value:
        if type(characters) is not str:
            no_fit(how, characters)
        if characters == " ":
            return getattr(to_text(value), _STRIPS[how])(" ")
        # With two arguments, Spark takes them in the order of the older form: `trim(characters, text)`.
        return getattr(to_text(characters), _STRIPS[how])(to_text(value))

    return trim


def btrim(value: Value, characters: Value = " ") -> Value:
    return to_text(value).strip(to_text(characters))


def replace(value: Value, old: Value, new: Value = "") -> Value:
    text, search, by = to_text(value), to_text(old), to_text(new)
    if not search:
        return text
    if len(by) > len(search):
        check_characters(len(text) + text.count(search) * (len(by) - len(search)), "replace")
    return text.replace(search, by)


def translate(value: Value, old: Value, new: Value) -> Value:
    """Replace characters; a character that becomes NUL is removed, as in Spark."""
    to = to_text(new)
    table: dict[int, str | None] = {}
    for position, character in enumerate(to_text(old)):
        table.setdefault(ord(character), (to[position] if position < len(to) else "").strip("\0") or None)
    return to_text(value).translate(table)


def initcap(value: Value) -> Value:
    return " ".join(word[:1].upper() + word[1:].lower() for word in to_text(value).split(" "))


def repeat(value: Value, count: Value) -> Value:
    text, number = to_text(value), max(0, to_whole(count))
    check_characters(len(text) * number, "repeat")
    return text * number


def create_pad(on_left: bool) -> Value:  # noqa: FBT001
    """Return the function `lpad` or `rpad`."""

    def pad(value: Value, count: Value, fill: Value = " ") -> Value:
        text, size, filler = to_text(value), max(0, to_whole(count)), to_text(fill)
        check_characters(size, "lpad" if on_left else "rpad")
        if len(text) >= size or not filler:
            return text[:size]
        missing = size - len(text)
        padding = (filler * (missing // len(filler) + 1))[:missing]
        return padding + text if on_left else text + padding

    return pad


def instr(value: Value, search: Value) -> Value:
    return to_text(value).find(to_text(search)) + 1


def locate(search: Value, value: Value, start: Value = 1) -> Value:
    first = to_whole(start)
    return to_text(value).find(to_text(search), first - 1) + 1 if first > 0 else 0


def ascii_code(value: Value) -> Value:
    text = to_text(value)
    return ord(text[0]) if text else 0


def character(value: Value) -> Value:
    code = to_whole(value)
    return "" if code < 0 else chr(code & 0xFF)


def split_part(value: Value, separator: Value, part: Value) -> Value:
    number, between = to_whole(part), to_text(separator)
    if number == 0:
        raise EvaluationError("the parts of `split_part` start at 1")
    parts = to_text(value).split(between) if between else [to_text(value)]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


# Regular expressions of Java and Python agree on what is usual; neither bounds the time that one may take.


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression; raise EvaluationError if it is not one."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise EvaluationError("the pattern is not a regular expression") from None


@lru_cache(maxsize=4096)
def like_pattern(text: str, escape: str = "\\", flags: int = 0) -> re.Pattern[str]:
    r"""Translate a LIKE pattern: `%` any characters, `_` one, `escape` before a literal character."""
    parts: list[str] = []
    characters = iter(text)
    for each in characters:
        if each == escape:
            following = next(characters, None)
            if following not in {"%", "_", escape}:
                raise EvaluationError("a LIKE pattern escapes a character that cannot be escaped")
            parts.append(re.escape(str(following)))
        else:
            parts.append({"%": ".*", "_": "."}.get(each) or re.escape(each))
    return re.compile("".join(parts), re.DOTALL | flags)


def like(value: Value, search: Value, escape: Value = "\\") -> Value:
    return like_pattern(to_text(search), escape).fullmatch(to_text(value)) is not None


def ilike(value: Value, search: Value, escape: Value = "\\") -> Value:
    return like_pattern(to_text(search), escape, re.IGNORECASE).fullmatch(to_text(value)) is not None


def rlike(value: Value, search: Value) -> Value:
    return compile_pattern(to_text(search)).search(to_text(value)) is not None


@lru_cache(maxsize=4096)
def _replacement(text: str) -> str:
    r"""Translate `$1` and `\$` of Java to Python."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts.append(re.sub(r"\\", r"\\\\", text[at + 1]))
            at += 2
        elif text[at] == "$":
            found = re.compile(r"\d").match(text, at + 1)
            if found is None:
                raise EvaluationError("a `$` in the replacement is not followed by a group")
            parts.append(rf"\g<{found[0]}>")
            at += 2
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


def regexp_replace(value: Value, search: Value, new: Value, position: Value = 1) -> Value:
    text, start, by = to_text(value), to_whole(position) - 1, to_text(new)
    compiled, replacement = compile_pattern(to_text(search)), _replacement(by)
    try:
        # Each match adds the new text at most, and its groups.
        if (len(text) + 1) * (len(by) + 1) > LONGEST_RESULT:
            return text[:start] + _replace_matches(compiled, replacement, text[start:])
        return text[:start] + compiled.sub(replacement, text[start:])
    except (re.error, IndexError):
        raise EvaluationError("the replacement uses a group that is not in the pattern") from None


def _replace_matches(compiled: re.Pattern[str], replacement: str, text: str) -> str:
    """Replace as `re.sub` does; raise EvaluationError as soon as the result is too long."""
    characters = len(text)

    def expand(match: re.Match[str]) -> str:
        nonlocal characters
        expanded = match.expand(replacement)
        characters += len(expanded)
        check_characters(characters, "regexp_replace")
        return expanded

    return compiled.sub(expand, text)


def regexp_extract(value: Value, search: Value, group: Value = 1) -> Value:
    found = compile_pattern(to_text(search)).search(to_text(value))
    number = to_whole(group)
    if number < 0 or number > compile_pattern(to_text(search)).groups:
        raise EvaluationError("`regexp_extract` uses a group that is not in the pattern")
    return "" if found is None else found[number] or ""


def regexp_extract_all(value: Value, search: Value, group: Value = 1) -> Value:
    number = to_whole(group)
    if number < 0 or number > compile_pattern(to_text(search)).groups:
        raise EvaluationError("`regexp_extract_all` uses a group that is not in the pattern")
    return [found[number] or "" for found in compile_pattern(to_text(search)).finditer(to_text(value))]


def regexp_count(value: Value, search: Value) -> Value:
    return sum(1 for _ in compile_pattern(to_text(search)).finditer(to_text(value)))


def split(value: Value, search: Value, limit: Value = -1) -> Value:
    """Split as Java does: ignore an empty match at the start, keep empty parts at the end."""
    text, most, at = to_text(value), to_whole(limit), 0
    parts: list[str] = []
    for found in compile_pattern(to_text(search)).finditer(text):
        if most > 0 and len(parts) == most - 1:
            break
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        parts.append(text[at : found.start()])
        at = found.end()
    return [*parts, text[at:]]


FUNCTIONS: Mapping[str, Function] = {
    "concat": strict(concat, 0, None),
    "concat_ws": lenient(concat_ws, 1, None),
    "upper": strict(lambda value: to_text(value).upper(), 1),
    "ucase": strict(lambda value: to_text(value).upper(), 1),
    "lower": strict(lambda value: to_text(value).lower(), 1),
    "lcase": strict(lambda value: to_text(value).lower(), 1),
    "initcap": strict(initcap, 1),
    "length": strict(length, 1),
    "len": strict(length, 1),
    "char_length": strict(length, 1),
    "character_length": strict(length, 1),
    "octet_length": strict(
        lambda value: len(value if type(value) is bytes else write_utf8(to_text(value))), 1
    ),
    "substring": strict(substring, 2, 3),
    "substr": strict(substring, 2, 3),
    "left": strict(left, 2),
    "right": strict(right, 2),
    "substring_index": strict(substring_index, 3),
    "trim": strict(create_trim("trim"), 1, 2),
    "btrim": strict(btrim, 1, 2),
    "ltrim": strict(create_trim("ltrim"), 1, 2),
    "rtrim": strict(create_trim("rtrim"), 1, 2),
    "replace": strict(replace, 2, 3),
    "translate": strict(translate, 3),
    "repeat": strict(repeat, 2),
    "reverse": strict(lambda value: value[::-1] if type(value) is list else to_text(value)[::-1], 1),
    "lpad": strict(create_pad(on_left=True), 2, 3),
    "rpad": strict(create_pad(on_left=False), 2, 3),
    "instr": strict(instr, 2),
    "locate": strict(locate, 2, 3),
    "position": strict(locate, 2, 3),
    "startswith": strict(lambda value, start: to_text(value).startswith(to_text(start)), 2),
    "endswith": strict(lambda value, end: to_text(value).endswith(to_text(end)), 2),
    "contains": strict(lambda value, part: to_text(part) in to_text(value), 2),
    "ascii": strict(ascii_code, 1),
    "char": strict(character, 1),
    "chr": strict(character, 1),
    "space": strict(lambda count: repeat(" ", count), 1),
    "split": strict(split, 2, 3),
    "split_part": strict(split_part, 3),
    "like": strict(like, 2, 3),
    "ilike": strict(ilike, 2, 3),
    "rlike": strict(rlike, 2),
    "regexp": strict(rlike, 2),
    "regexp_like": strict(rlike, 2),
    "regexp_replace": strict(regexp_replace, 3, 4),
    "regexp_extract": strict(regexp_extract, 2, 3),
    "regexp_extract_all": strict(regexp_extract_all, 2, 3),
    "regexp_count": strict(regexp_count, 2),
}
