"""What does not fit the schema, told to the person who wrote the document: one problem for each mistake, no cascades."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from jsonschema import ValidationError

from infra.model.problems import Location, Problem, ProblemCode
from infra.spec import wording
from infra.spec.limits import MAX_PROBLEMS
from infra.spec.places import PathPart, RawDocument
from infra.spec.schema import Schema, operators, resolve, schema_errors
from infra.spec.spelling import nearest

_UNKNOWN_WHY = "What is not understood would silently have no effect, so nothing is planned."
_WHY = "A document that does not fit the schema is not planned."
_FEW = 14


def violations(raw: RawDocument) -> tuple[Problem, ...]:
    """All that does not fit the schema, at most `MAX_PROBLEMS` of it."""
    problems = tuple(islice(_problems(raw), MAX_PROBLEMS + 1))
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = Problem(
        code=ProblemCode.SCHEMA_VIOLATION,
        summary=f"There are more than {MAX_PROBLEMS} mistakes; the rest is not shown.",
        why=_WHY,
        fix="Correct those shown first.",
        location=raw.location(()),
    )
    return (*problems[:MAX_PROBLEMS], more)


def _problems(raw: RawDocument) -> Iterator[Problem]:
    seen: set[tuple[object, ...]] = set()
    for error in schema_errors(raw.data):
        path = tuple(error.absolute_path)
        key = (path, error.validator, tuple(error.absolute_schema_path))
        if key in seen or _follows_from_another(error):
            continue
        seen.add(key)
        yield from _told(raw, path, error)


def _follows_from_another(error: ValidationError) -> bool:
    """A step of several keys is one mistake of indentation, not several unknown operators."""
    is_step = isinstance(error.schema, dict) and error.schema.get("maxProperties") == 1
    return is_step and error.validator == "additionalProperties" and len(error.instance) > 1


def _told(raw: RawDocument, path: tuple[PathPart, ...], error: ValidationError) -> Iterator[Problem]:
    tell = _bad_key if "propertyNames" in error.absolute_schema_path else _TELLERS.get(str(error.validator), _other)
    for at, at_key, texts in tell(path, error):
        location = raw.location(at, at_key=at_key)
        if location is not None:
            yield _problem(location, texts)


def _problem(location: Location, texts: dict[str, str]) -> Problem:
    return Problem(code=ProblemCode.SCHEMA_VIOLATION, location=location, **{"why": _WHY, **texts})  # type: ignore[arg-type]


_Told = Iterator[tuple[tuple[PathPart, ...], bool, dict[str, str]]]


def _unknown_keys(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    allowed = tuple(error.schema.get("properties", ()))
    where = wording.subject(path)
    for key in error.instance:
        if key in allowed:
            continue
        shown = wording.shorten(key)
        meant = nearest(key, allowed)
        is_operator = allowed == operators()
        yield (
            (*path, key),
            True,
            {
                "summary": f"There is no operator `{shown}`." if is_operator else f"{_capital(where)} has no key `{shown}`.",
                "expected": _one_of(allowed),
                "found": f"`{shown}`",
                "why": _UNKNOWN_WHY,
                "fix": _meant(meant) or (f"Use one of {wording.code(allowed)}." if is_operator else _belongs(key, error.schema)),
            },
        )


def _belongs(key: str, schema: Schema) -> str:
    """Where a key that is unknown here is known: one level deeper."""
    inside = [name for name, part in schema.get("properties", {}).items() if key in resolve(part).get("properties", ())]
    return f"Move it into {wording.either([f'`{name}`' for name in inside])}." if inside else "Remove it."


def _wrong_type(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    allowed = wording.types(error.validator_value)
    quotes = isinstance(error.instance, bool | int | float) and "string" in error.validator_value
    fix = "Put it into quotes." if quotes else f"Write {_expected(error.schema, allowed)}."
    yield (
        path,
        False,
        {
            "summary": f"{_capital(wording.subject(path))} must be {allowed}.",
            "expected": _expected(error.schema, allowed),
            "found": wording.found(error.instance),
            "fix": fix,
        },
    )


def _not_listed(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    values = [error.validator_value] if error.validator == "const" else error.validator_value
    words = list(dict.fromkeys(_plain(value) for value in values))
    meant = nearest(error.instance, words) if isinstance(error.instance, str) else None
    texts = {
        "summary": f"{_capital(wording.subject(path))} cannot be {wording.found(error.instance)}.",
        "expected": wording.either([f"`{word}`" for word in words]),
        "found": wording.found(error.instance),
        "fix": _meant(meant) or f"Write {wording.either([f'`{word}`' for word in words])}.",
    }
    if error.validator == "const":
        texts["why"] = error.schema.get("description", _WHY)
    yield path, False, texts


def _missing(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    required = error.validator_value
    if error.validator == "dependentRequired":
        required = [name for given, names in required.items() if given in error.instance for name in names]
    for name in dict.fromkeys(required):
        if name not in error.instance:
            described = resolve(error.schema.get("properties", {}).get(name, {})).get("description", "")
            yield (
                path,
                True,
                {
                    "summary": f"{_capital(wording.subject(path))} lacks `{name}`.",
                    "expected": f"`{name}`",
                    "found": wording.found(error.instance),
                    "fix": f"Add `{name}`" + (f": {described}" if described else "."),
                },
            )


def _one_of_several(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    names = [name for branch in error.validator_value for name in _names(branch)]
    given = [name for name in names if name in error.instance]
    yield (
        path,
        True,
        {
            "summary": f"{_capital(wording.subject(path))} needs exactly one of {wording.code(names)}.",
            "expected": "exactly one of " + wording.code(names),
            "found": wording.code(given) or "none of them",
            "fix": f"Keep one of {wording.code(given)}." if given else f"Add {wording.either([f'`{name}`' for name in names])}.",
        },
    )


def _excluded(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    said = error.schema.get("description", f"{wording.subject(path)} does not belong here.")
    summary, _, why = said.partition(": ")
    yield (
        path,
        True,
        {
            "summary": summary.removesuffix(".") + ".",
            "found": wording.found(error.instance),
            "why": _capital(why) or _WHY,
            "fix": f"Remove {wording.subject(path)}.",
        },
    )


def _several_keys(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    keys = list(error.instance)
    known = next((key for key in keys if key in operators()), None)
    fix = "Write one operator a step: begin each with `- `."
    if known is not None and not all(key in operators() for key in keys):
        fix = f"Indent the options under `{known}:`, deeper than `{known}` itself."
    yield (
        path,
        False,
        {
            "summary": f"{_capital(wording.subject(path))} must have one key, the operator.",
            "expected": "one operator",
            "found": wording.code(wording.shorten(key) for key in keys[:_FEW]) or "an empty mapping",
            "fix": fix,
        },
    )


def _bad_text(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    words = [example for example in error.schema.get("examples", ()) if isinstance(example, str)]
    meant = nearest(error.instance, words) if len(words) > 1 else None
    expected = _expected(error.schema, error.schema.get("title", "text"))
    yield (
        path,
        False,
        {
            "summary": f"{_capital(wording.subject(path))} cannot be {wording.found(error.instance)}.",
            "expected": expected,
            "found": wording.found(error.instance),
            "fix": _meant(meant) or error.schema.get("description", f"Write {expected}."),
        },
    )


def _bad_key(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    expected = _expected(error.schema, error.schema.get("title", "a name"))
    yield (
        (*path, str(error.instance)),
        True,
        {
            "summary": f"`{wording.shorten(str(error.instance))}` cannot be a key of {wording.subject(path)}.",
            "expected": expected,
            "found": f"`{wording.shorten(str(error.instance))}`",
            "fix": error.schema.get("description", f"Write {expected}."),
        },
    )


def _other(path: tuple[PathPart, ...], error: ValidationError) -> _Told:
    limit = _LIMITS.get(str(error.validator), "{}").format(error.validator_value)
    yield (
        path,
        False,
        {
            "summary": f"{_capital(wording.subject(path))} must have {limit}."
            if str(error.validator).endswith(("Items", "Length"))
            else f"{_capital(wording.subject(path))} must be {limit}.",
            "expected": limit,
            "found": wording.found(error.instance),
            "fix": f"Write {_expected(error.schema, limit)}.",
        },
    )


_LIMITS = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "minLength": "at least {} character",
    "maxLength": "at most {} characters",
    "minItems": "at least {} item(s)",
    "minProperties": "one operator",
    "uniqueItems": "a list without repetition",
}
_TELLERS = {
    "additionalProperties": _unknown_keys,
    "type": _wrong_type,
    "enum": _not_listed,
    "const": _not_listed,
    "required": _missing,
    "dependentRequired": _missing,
    "oneOf": _one_of_several,
    "not": _excluded,
    "maxProperties": _several_keys,
    "minProperties": _several_keys,
    "pattern": _bad_text,
}


def _names(branch: Schema) -> list[str]:
    """The keys that a branch of a `oneOf` asks for, itself or by its alternatives."""
    return [*branch.get("required", ()), *(name for part in branch.get("anyOf", ()) for name in _names(part))]


def _expected(schema: Schema, phrase: str) -> str:
    examples = [_plain(example) for example in schema.get("examples", ()) if not isinstance(example, dict | list)]
    return f"{phrase}, such as {wording.either([f'`{example}`' for example in examples[:4]])}" if examples else phrase


def _one_of(words: Sequence[str]) -> str:
    return "one of " + wording.code(words) if len(words) <= _FEW else f"one of {len(words)} known names"


def _meant(word: str | None) -> str:
    return f"Did you mean `{word}`?" if word is not None else ""


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
