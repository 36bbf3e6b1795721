"""The published schema of documents: valid, documented, and supported completely by the code."""

from collections.abc import Iterator

from jsonschema import Draft202012Validator

from headwater.spec import schema_problems
from headwater.spec.schema import Schema, document_schema, resolve_reference

SCHEMA = document_schema()
APPLICATORS = {
    "properties",
    "patternProperties",
    "items",
    "propertyNames",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "if",
    "then",
    "$defs",
}
ANNOTATIONS = {"$schema", "$id", "title", "description", "examples", "default"}


def schemas(schema: Schema = SCHEMA, path: str = "#") -> Iterator[tuple[str, Schema]]:
    """Yield a schema and all schemas in it, with their paths."""
    yield path, schema
    for keyword in ("properties", "$defs", "dependentSchemas"):
        for name, part in schema.get(keyword, {}).items():
            yield from schemas(part, f"{path}/{keyword}/{name}")
    for keyword in ("items", "additionalProperties", "propertyNames", "if", "then"):
        if isinstance(schema.get(keyword), dict):
            yield from schemas(schema[keyword], f"{path}/{keyword}")
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(keyword, ())):
            yield from schemas(part, f"{path}/{keyword}/{index}")


def is_condition(path: str) -> bool:
    return any(
        f"/{keyword}/" in path or path.endswith(f"/{keyword}")
        for keyword in ("if", "then", "allOf", "oneOf", "dependentSchemas")
    )


DOCUMENTED = [(path, part) for path, part in schemas() if not is_condition(path)]


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_each_part_has_a_description_and_examples() -> None:
    known = {path: resolve_reference(part) for path, part in DOCUMENTED}
    assert [path for path, part in known.items() if not part.get("description", "").endswith(".")] == []
    assert [path for path, part in known.items() if not part.get("examples")] == []


def test_each_definition_has_a_title() -> None:
    assert [name for name, part in SCHEMA["$defs"].items() if not part.get("title")] == []


def test_each_example_and_default_is_valid() -> None:
    for path, part in DOCUMENTED:
        validator = Draft202012Validator({**part, "$defs": SCHEMA["$defs"]})
        known = resolve_reference(part)
        for example in [*known["examples"], *([known["default"]] if "default" in known else [])]:
            assert validator.is_valid(example), (path, example)


def test_each_mapping_declares_additional_properties() -> None:
    for path, part in DOCUMENTED:
        types = part.get("type", ())
        if "object" in ([types] if isinstance(types, str) else types):
            assert "additionalProperties" in part, path


def test_each_keyword_has_a_problem_text() -> None:
    used = {keyword for _, part in schemas() for keyword in part}
    assert used <= {"$ref", *schema_problems._MISTAKES} | APPLICATORS | ANNOTATIONS
