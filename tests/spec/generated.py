"""Documents generated from the schema: valid ones, and ones with errors."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from headwater.spec.schema import Schema, document_schema, resolve

_MAX_DEPTH = 7

# JSON Schema accepts 3.0 as an integer and, in Python, "a\n" as a match of `^a$`. Documents do not.
fractions = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
texts = st.text(max_size=12).filter(lambda text: not text.endswith("\n"))
scalars = st.none() | st.booleans() | st.integers() | fractions | texts


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Mostly valid documents: conditions between options (`if`, `dependentRequired`) are not considered."""
    return _values(document_schema(), 0)


@st.composite
def damaged(draw: st.DrawFn) -> Any:  # noqa: ANN401 - any value
    """A document with one value replaced by any other, or one key added."""
    document = draw(documents())
    inner: Any = document
    while isinstance(inner, dict | list) and inner and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        if not isinstance(inner[key], dict | list) or not draw(st.integers(0, 3)):
            inner[key] = draw(
                st.recursive(
                    scalars,
                    lambda any_: st.lists(any_, max_size=2) | st.dictionaries(texts, any_, max_size=2),
                )
            )
            return document
        inner = inner[key]
    if isinstance(inner, dict):
        inner[draw(texts)] = draw(scalars)
    return document


def _values(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    schema = resolve(schema)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    types = schema.get("type", "object")
    return st.one_of(
        [_of_type(name, schema, depth) for name in ([types] if isinstance(types, str) else types)]
    )


def _of_type(name: str, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    match name:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return st.integers(schema.get("minimum", -5), min(schema.get("maximum", 100_000), 100_000))
        case "string":
            return st.sampled_from(
                [example for example in schema["examples"] if isinstance(example, str)] or ["5"]
            )
        case "array":
            minimum, maximum = schema.get("minItems", 0), 0 if depth > _MAX_DEPTH else 4
            return st.lists(
                _values(schema["items"], depth + 1), min_size=minimum, max_size=max(minimum, maximum)
            )
        case _:
            # Hypothesis prints the arguments of a strategy: a function keeps them short.
            return _mappings(lambda: schema, depth)


@st.composite
def _mappings(draw: st.DrawFn, given: Callable[[], Schema], depth: int) -> dict[str, Any]:
    schema = given()
    properties = dict(schema.get("properties", {}))
    if depth > _MAX_DEPTH:
        properties.pop("split", None)
    if schema.get("maxProperties") == 1:
        chosen = {draw(st.sampled_from(sorted(properties)))}
    else:
        branches = [branch["required"] for branch in schema.get("oneOf", ()) if "required" in branch]
        required = draw(st.sampled_from(branches)) if branches else []
        others = {key for branch in branches for key in branch} - set(required)
        optional = [key for key in properties if key not in others]
        chosen = {
            *schema.get("required", ()),
            *required,
            *(draw(st.sets(st.sampled_from(optional), max_size=4)) if optional else ()),
        }
    mapping = {key: draw(_values(properties[key], depth + 1)) for key in sorted(chosen)}
    if isinstance(schema.get("additionalProperties"), dict):
        keys = st.sampled_from(["min.insync.replicas", "a", "x.y"])
        mapping |= draw(st.dictionaries(keys, _values(schema["additionalProperties"], depth + 1), max_size=2))
    return mapping
