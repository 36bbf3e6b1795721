"""Problems for what does not fit a schema, in the terms of the user who wrote the file."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from headwater.model.problems import Problem, ProblemCode, shorten_text
from headwater.spec.files import DOCUMENT, FileKind
from headwater.spec.locations import MAX_PROBLEMS, PathPart, RawDocument
from headwater.spec.misread_values import misread_type_fix, no_break_space_fix, quotes_fix, unquoted_fix
from headwater.spec.phrases import (
    capitalize,
    describe_path,
    describe_value,
    first_repeated,
    join_with_or,
    nearest_word,
    one_of,
    quote_words,
    such_as,
    type_names,
    with_article,
    yaml_literal,
)
from headwater.spec.schema import Schema, Violation, find_violations, operator_names, resolve_reference


@attrs.frozen
class SplitExpression:
    """The value `start` of `key`, and the keys without a value that continue it."""

    key: str
    start: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the expression that was probably meant."""
        return ", ".join((self.start, *self.pieces))


def _split_expressions(mapping: Mapping[str, Any], allowed: Collection[str]) -> tuple[SplitExpression, ...]:
    """Return the expressions that commas split within `mapping`, whose known keys are `allowed`.

    Such an expression is text with an open bracket, before unknown keys that have no value.
    """
    pieces: dict[str, list[str]] = {}
    key: str | None = None
    for name, value in mapping.items():
        if name in allowed:
            key = name if isinstance(value, str) and _open_brackets(value) > 0 else None
        elif value is not None or nearest_word(name, allowed):
            key = None
        elif key is not None:
            pieces.setdefault(key, []).append(name)
    return tuple(SplitExpression(key, mapping[key], tuple(names)) for key, names in pieces.items())


def _open_brackets(text: str) -> int:
    return sum(text.count(bracket) for bracket in "([") - sum(text.count(bracket) for bracket in ")]")


_UNKNOWN = "An unknown key would have no effect, so nothing is planned."
_MANY_KEYS = 14


def schema_problems(raw: RawDocument, kind: FileKind = DOCUMENT) -> tuple[Problem, ...]:
    """Return what does not fit the schema of this kind of file, at most `MAX_PROBLEMS` problems."""
    problems = tuple(islice(_find_problems(raw, kind), MAX_PROBLEMS + 1))
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = Problem(
        code=ProblemCode.SCHEMA_VIOLATION,
        summary=f"There are more than {MAX_PROBLEMS} problems; the others are not shown.",
        why=kind.why_misfit,
        fix="Correct the problems above first.",
        location=raw.location(()),
    )
    return (*problems[:MAX_PROBLEMS], more)


def _find_problems(raw: RawDocument, kind: FileKind) -> Iterator[Problem]:
    reported: set[tuple[object, ...]] = set()
    for violation in find_violations(raw.data, kind.schema):
        # a rule about several keys (`required`) is violated once per key, and reported once
        rule = (violation.path, violation.schema_path, violation.value if violation.is_of_key else None)
        if rule not in reported and not _follows_from_indentation(raw.data, violation):
            reported.add(rule)
            yield from _locate_violation(raw, violation, kind)


def _follows_from_indentation(data: Any, violation: Violation) -> bool:  # noqa: ANN401 - walks any value
    """Return whether the value is within a step of several keys, which is reported as such."""
    for index, part in enumerate(violation.path):
        data = data[part]
        is_step = isinstance(part, int) and violation.path[index - 1] in ("topology", "then")
        if is_step and isinstance(data, dict) and len(data) > 1:
            return violation.keyword != "maxProperties"
    return False


def _locate_violation(raw: RawDocument, violation: Violation, kind: FileKind) -> Iterator[Problem]:
    for mistake in _find_mistakes(violation):
        location = raw.location(mistake.path, at_key=mistake.at_key)
        if location is not None:
            yield Problem(
                code=ProblemCode.SCHEMA_VIOLATION,
                summary=mistake.summary,
                expected=mistake.expected,
                found=mistake.found,
                why=mistake.why or kind.why_misfit,
                fix=mistake.fix,
                location=location,
            )


@attrs.frozen(kw_only=True)
class _Mistake:
    """The texts of a problem with the value at `path`, or with `at_key` with its key."""

    path: tuple[PathPart, ...]
    at_key: bool = False
    summary: str
    expected: str
    found: str
    fix: str
    why: str = ""
    """Empty = what happens to any file that does not fit the schema."""


def _find_mistakes(violation: Violation) -> Iterator[_Mistake]:
    """Yield one for each thing to correct; none if another one covers it."""
    describe = _bad_key if violation.is_of_key else _MISTAKES[violation.keyword]
    return describe(violation)


def _unknown_keys(violation: Violation) -> Iterator[_Mistake]:
    allowed = tuple(violation.schema.get("properties", ()))
    is_step = allowed == operator_names()
    owner = capitalize(describe_path(violation.path))
    splits = _split_expressions(violation.value, allowed)
    yield from (_split_expression(violation.path, split) for split in splits)
    pieces = {piece for split in splits for piece in split.pieces}
    for key in violation.value:
        if key not in allowed and key not in pieces:
            shown = f"`{shorten_text(key)}`"
            yield _Mistake(
                path=(*violation.path, key),
                at_key=True,
                summary=f"There is no operator {shown}." if is_step else f"{owner} has no key {shown}.",
                expected=f"one of the {len(allowed)} operators"
                if is_step
                else f"one of {quote_words(allowed)}",
                found=shown,
                fix=(_STORE_NAME if key in _NAMES and violation.path[-1:] == ("materialized",) else None)
                or _ELSEWHERE.get(key)
                or no_break_space_fix(key)
                or _meant_word(key, allowed)
                or _deeper_key(key, violation.schema)
                or f"Use {one_of(allowed)}.",
                why=_UNKNOWN,
            )


_ELSEWHERE = {
    "application.id": "Write `id` below `application`.",
    "emitStrategy": "Set `emit` of `windowedBy`: `onWindowUpdate` or `onWindowClose`.",
    "keyed": "Set it on a store in `addStateStore`, or in the `stores` of a processor. Stores of other "
    "operators need none.",
}
"""Names of Kafka Streams, and options, that belong to another operator."""
_NAMES = ("name", "as", "storeName")
_STORE_NAME = "Write `store`: it is the name of `Materialized.as`."
"""A supplier has a `name`, too, but is another kind of store than the operator creates."""


def _split_expression(path: tuple[PathPart, ...], split: SplitExpression) -> _Mistake:
    whole = shorten_text(split.text)
    return _Mistake(
        path=(*path, split.pieces[0]),
        at_key=True,
        summary=f"A comma ends the value of `{split.key}` too early.",
        expected=f"`{split.key}: {json.dumps(whole, ensure_ascii=False)}`",
        found=f"`{shorten_text(split.start)}`, and then the key `{shorten_text(split.pieces[0])}`",
        fix="Put the expression in quotes: within braces a comma separates keys.",
    )


def _deeper_key(key: str, schema: Schema) -> str:
    """Return a fix if the key is valid one level deeper."""
    inside = _sections_with(key, schema)
    return f"Move it into {one_of(inside)}." if 0 < len(inside) < _MANY_KEYS else ""


def _sections_with(key: str, schema: Schema) -> list[str]:
    parts = schema.get("properties", {})
    return [name for name, part in parts.items() if key in resolve_reference(part).get("properties", ())]


def _wrong_type(violation: Violation) -> Iterator[_Mistake]:
    allowed = type_names(violation.requires)
    is_unquoted = isinstance(violation.value, bool | int | float) and violation.requires == "string"
    expected = such_as(allowed, violation.schema)
    yield _Mistake(
        path=violation.path,
        summary=f"{capitalize(describe_path(violation.path))} must be {allowed}.",
        expected=expected,
        found=describe_value(violation.value),
        fix="Put it in quotes." if is_unquoted else _meant_type(violation) or f"Write {expected}.",
    )


def _meant_type(violation: Violation) -> str:
    """Return a fix that says what to type; empty if an example of the type is the best one."""
    path, value = violation.path, violation.value
    is_step = len(path) > 1 and isinstance(path[-1], int) and path[-2] in ("topology", "then")
    fix = misread_type_fix(value, violation.requires, describe_path(path), is_step=is_step)
    if path or (fix and isinstance(value, list)):
        return fix
    return f"Write a mapping with {quote_words(violation.schema['required'])}."


def _not_listed(violation: Violation) -> Iterator[_Mistake]:
    values = [violation.requires] if violation.keyword == "const" else violation.requires
    words = tuple(dict.fromkeys(yaml_literal(value) for value in values))
    yield _Mistake(
        path=violation.path,
        summary=f"{capitalize(describe_path(violation.path))} cannot be {describe_value(violation.value)}.",
        expected=one_of(words),
        found=describe_value(violation.value),
        fix=unquoted_fix(violation.value, violation.schema.get("type", ()))
        or _meant_word(violation.value, words)
        or f"Write {one_of(words)}.",
        why=violation.schema.get("description", "") if violation.keyword == "const" else "",
    )


def _missing_keys(violation: Violation) -> Iterator[_Mistake]:
    required = violation.requires
    if violation.keyword == "dependentRequired":
        required = [name for given, names in required.items() if given in violation.value for name in names]
    mistyped = _mistyped_keys(violation)
    for name in dict.fromkeys(required):
        if name not in violation.value and name not in mistyped:
            described = resolve_reference(violation.schema.get("properties", {}).get(name, {})).get(
                "description"
            )
            yield _Mistake(
                path=violation.path,
                at_key=True,
                summary=f"{capitalize(describe_path(violation.path))} has no `{name}`.",
                expected=f"`{name}`",
                found=describe_value(violation.value),
                fix=f"Add `{name}`: {described}" if described else f"Add `{name}`.",
            )


def _one_of_several(violation: Violation) -> Iterator[_Mistake]:
    if not isinstance(violation.value, dict):  # the wrong type is reported
        return
    branches = [keys for branch in violation.requires if (keys := _required_keys(branch))]
    names = [name for branch in branches for name in branch]
    given = [name for name in names if name in violation.value]
    if not given and _mistyped_keys(violation) & set(names):
        return
    choice = join_with_or([" and/or ".join(f"`{name}`" for name in branch) for branch in branches])
    yield _Mistake(
        path=violation.path,
        at_key=True,
        summary=f"{capitalize(describe_path(violation.path))} needs exactly one of {choice}.",
        expected=f"exactly one of {choice}",
        found=quote_words(given) or "none of them",
        fix=f"Keep one of {quote_words(given)}." if given else f"Add {choice}.",
    )


def _required_keys(branch: Schema) -> list[str]:
    """Return the keys that a branch of a `oneOf` requires, directly or in its alternatives."""
    return [
        *branch.get("required", ()),
        *(name for part in branch.get("anyOf", ()) for name in _required_keys(part)),
    ]


def _excluded_keys(violation: Violation) -> Iterator[_Mistake]:
    yield _Mistake(
        path=violation.path,
        at_key=True,
        summary=violation.schema["title"],
        expected=f"no {describe_path(violation.path)}",
        found=describe_value(violation.value),
        fix=f"Remove {describe_path(violation.path)}.",
        why=violation.schema["description"],
    )


def _several_keys(violation: Violation) -> Iterator[_Mistake]:
    keys = tuple(violation.value)
    known = [key for key in keys if key in operator_names()]
    is_indentation = len(known) == 1 and len(keys) > 1
    yield _Mistake(
        path=violation.path,
        summary=f"{capitalize(describe_path(violation.path))} must have one key, the operator.",
        expected="one operator",
        found=quote_words(shorten_text(key) for key in keys[:_MANY_KEYS]) or "an empty mapping",
        fix=f"Indent the options of `{known[0]}` deeper than `{known[0]}` itself."
        if is_indentation
        else "Begin each step with `- ` and one operator.",
    )


def _bad_text(violation: Violation) -> Iterator[_Mistake]:
    examples = [word for word in violation.schema.get("examples", ()) if isinstance(word, str)]
    expected = such_as(with_article(violation.schema.get("title", "text of another form")), violation.schema)
    yield _Mistake(
        path=violation.path,
        summary=f"{capitalize(describe_path(violation.path))} cannot be {describe_value(violation.value)}.",
        expected=expected,
        found=describe_value(violation.value),
        fix=quotes_fix(violation.value)
        or unquoted_fix(violation.value, violation.schema.get("type", ()))
        or _meant_word(violation.value, examples)
        or f"Write {expected}.",
        why=_rule_of(violation.schema),
    )


def _bad_key(violation: Violation) -> Iterator[_Mistake]:
    expected = such_as(with_article(violation.schema.get("title", "name")), violation.schema)
    shown = f"`{shorten_text(violation.value)}`"
    yield _Mistake(
        path=(*violation.path, violation.value),
        at_key=True,
        summary=f"{shown} cannot be a key of {describe_path(violation.path)}.",
        expected=expected,
        found=shown,
        fix=f"Write {expected}.",
        why=_rule_of(violation.schema),
    )


def _rule_of(schema: Schema) -> str:
    """Return the description of this kind of value, rather than the description of this property."""
    return str(schema.get("$comment", schema.get("description", "")))


def _beyond_limit(violation: Violation) -> Iterator[_Mistake]:
    limit = _LIMITS[violation.keyword].format(violation.requires)
    yield _Mistake(
        path=violation.path,
        summary=f"{capitalize(describe_path(violation.path))} must be {limit}.",
        expected=limit,
        found=first_repeated(violation.value)
        if violation.keyword == "uniqueItems"
        else describe_value(violation.value),
        fix=f"Write {such_as(limit, violation.schema)}.",
    )


_LIMITS = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "minLength": "text that is not empty",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {}",
    "uniqueItems": "a list without repetition",
}
_MISTAKES: dict[str, Callable[[Violation], Iterator[_Mistake]]] = {
    "additionalProperties": _unknown_keys,
    "type": _wrong_type,
    "enum": _not_listed,
    "const": _not_listed,
    "required": _missing_keys,
    "dependentRequired": _missing_keys,
    "oneOf": _one_of_several,
    "not": _excluded_keys,
    "maxProperties": _several_keys,
    "minProperties": _several_keys,
    "pattern": _bad_text,
    **dict.fromkeys(_LIMITS, _beyond_limit),
}
"""All keywords with which the schemas refuse values (a test compares them)."""


def _mistyped_keys(violation: Violation) -> set[str | None]:
    """Return the keys that unknown keys probably mean: they are not also reported as missing."""
    allowed = violation.schema.get("properties", {})
    meant: set[str | None] = set()
    for key in islice((key for key in violation.value if key not in allowed), _MANY_KEYS):
        meant.add(nearest_word(key, allowed))
        meant.update(_sections_with(key, violation.schema))
    return meant


def _meant_word(word: object, allowed: tuple[str, ...] | list[str]) -> str:
    meant = nearest_word(word, allowed) if isinstance(word, str) else None
    return f"Did you mean `{meant}`?" if meant is not None else ""
