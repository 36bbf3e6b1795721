"""Short phrases for what was found and what is allowed, as they stand in problems."""

from collections.abc import Iterable, Mapping, Sequence

from infra.spec.places import PathPart

_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_LONGEST = 60
_FEW = 6


def code(words: Iterable[str]) -> str:
    """`a`, `b`, `c`."""
    return ", ".join(f"`{word}`" for word in words)


def either(phrases: Sequence[str]) -> str:
    """a, b or c."""
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def one_of(words: Sequence[str]) -> str:
    """`a`, `b` or `c`."""
    return either([f"`{word}`" for word in words])


def a(noun: str) -> str:
    """With its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def capital(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]


def types(names: str | Sequence[str]) -> str:
    """JSON Schema types as people call them."""
    return either([_TYPES[name] for name in ([names] if isinstance(names, str) else names)])


def such_as(phrase: str, schema: Mapping[str, object]) -> str:
    """`phrase` with the schema's short examples."""
    examples = schema.get("examples")
    plain = (
        [literal(example) for example in examples if not isinstance(example, dict | list)]
        if isinstance(examples, list)
        else []
    )
    return f"{phrase}, such as {one_of(plain[:4])}" if plain else phrase


def literal(value: object) -> str:
    """A value as a document would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def found(value: object) -> str:
    """A value in few words."""
    match value:
        case bool() | None:
            return "nothing" if value is None else literal(value)
        case str():
            return f"`{shorten(value)}`" if value else "empty text"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case dict():
            keys = code(shorten(key) for key in list(value)[:_FEW])
            return f"a mapping with {keys}" if value else "an empty mapping"
        case _:
            return f"the number {shorten(str(value))}"


def shorten(text: str) -> str:
    """At most 60 characters on one line."""
    line = " ".join(text[: 2 * _LONGEST].split())
    return line if len(line) <= _LONGEST and len(text) <= 2 * _LONGEST else line[: _LONGEST - 1] + "…"


def subject(path: Sequence[PathPart]) -> str:
    """What the value at `path` is, seen by a reader of the document."""
    if not path:
        return "the document"
    last = path[-1]
    if isinstance(last, str):
        return f"`{shorten(last)}`"
    if len(path) > 1 and path[-2] in ("topology", "then"):
        return f"step {last + 1}"
    return f"item {last + 1} of {subject(path[:-1])}"
