"""Properties of every input: nothing raises, and each document that the schema allows is read."""

import json
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from headwater.spec import load_text
from headwater.spec.build_document import build_document
from headwater.spec.locations import NO_POSITION, RawDocument
from headwater.spec.schema import Schema, document_schema, find_violations, resolve_reference
from headwater.spec.schema_problems import schema_problems

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
    schema = resolve_reference(schema)
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


PUBLISHED = Draft202012Validator(document_schema())
_YAML_CHARACTERS = st.text(alphabet="ab:-?[]{},&*!|>'\"%@`# \n\t\\~0123.\ufeff\u2028é😀", max_size=80)


@given(st.text(max_size=200) | _YAML_CHARACTERS)
@settings(max_examples=2 * settings().max_examples)
def test_any_text_yields_problems_and_no_exception(text: str) -> None:
    for file in ("any.yaml", "any.json"):
        loaded = load_text(text, file)
        assert loaded.problems
        assert loaded.documents == ()


@given(_YAML_CHARACTERS)
def test_any_text_in_a_document_yields_no_exception(text: str) -> None:
    loaded = load_text(
        f"application: {{id: shop}}\ntopology:\n  - stream: {{topic: a}}\n  - filter: {text}\n", "a.yaml"
    )
    assert loaded.problems or len(loaded.documents) == 1


@given(damaged() | st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_problems_are_reported_exactly_if_the_schema_is_violated(data: Any) -> None:  # noqa: ANN401 - any value
    found = schema_problems(RawDocument("any.yaml", data, NO_POSITION))

    assert bool(found) is not PUBLISHED.is_valid(data)
    assert all(problem.summary and problem.expected and problem.found and problem.fix for problem in found)


@given(damaged())
def test_violations_are_where_jsonschema_finds_them(data: Any) -> None:  # noqa: ANN401 - any value
    found = [(each.path, each.keyword, each.value, each.schema_path) for each in find_violations(data)]
    expected = [
        (tuple(each.absolute_path), each.validator, each.instance, tuple(each.absolute_schema_path))
        for each in PUBLISHED.iter_errors(data)
    ]

    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@given(documents())
def test_documents_that_the_schema_allows_are_built(data: dict[str, Any]) -> None:
    if PUBLISHED.is_valid(data):
        raw = RawDocument("any.yaml", data, NO_POSITION)
        document, problems = build_document(raw)
        assert document is not None or problems


@given(documents())
def test_yaml_and_json_yield_the_same_document(data: dict[str, Any]) -> None:
    as_json = load_text(json.dumps(data), "a.json")
    as_yaml = load_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), "a.yaml")

    def facts(loaded: Any) -> list[str]:  # noqa: ANN401 - two results of load_text
        return sorted(
            f"{problem.summary} {problem.fix}" for problem in loaded.problems if "line" not in problem.found
        )

    assert facts(as_json) == facts(as_yaml)
    assert [document.application.id for document in as_json.documents] == [
        document.application.id for document in as_yaml.documents
    ]


@given(documents())
def test_loading_is_deterministic(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    assert load_text(text, "a.json") == load_text(text, "a.json")
