"""The published JSON Schema: the one place that says what a document may hold."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import attrs
from jsonschema import Draft202012Validator

from infra.spec.places import PathPart

Schema = dict[str, Any]


@attrs.frozen
class Violation:
    """What does not fit: `value` at `path` breaks the rule `keyword: wants` of `schema`."""

    path: tuple[PathPart, ...]
    keyword: str
    wants: Any
    value: Any
    schema: Schema
    schema_path: tuple[PathPart, ...]

    @property
    def is_of_key(self) -> bool:
        """Whether `value` is a key of the mapping at `path`."""
        return "propertyNames" in self.schema_path


@cache
def document_schema() -> Schema:
    """`topology_schemas/topology.v1.schema.json`, in a clone or an installed package alike."""
    text = files("topology_schemas").joinpath("topology.v1.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def find_violations(data: object) -> Iterator[Violation]:
    """Found as they are asked for: a hostile document has more than anyone wants to compute."""
    for error in _validator().iter_errors(data):
        yield Violation(
            path=tuple(error.absolute_path),
            keyword=str(error.validator),
            wants=error.validator_value,
            value=error.instance,
            schema=error.schema if isinstance(error.schema, dict) else {},
            schema_path=tuple(error.absolute_schema_path),
        )


def resolve(schema: Schema) -> Schema:
    """`schema` with its `$ref` followed; keywords beside the reference win."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**document_schema()["$defs"][name], **beside}
    return schema


@cache
def operators() -> tuple[str, ...]:
    """The names of all operators, in the schema's order."""
    return tuple(document_schema()["$defs"]["step"]["properties"])


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(document_schema())
