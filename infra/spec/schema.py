"""The published JSON Schema: the one place that says what a document may hold."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

Schema = dict[str, Any]


@cache
def document_schema() -> Schema:
    """`topology_schemas/topology.v1.schema.json`, from a clone or an installed package alike."""
    text = files("topology_schemas").joinpath("topology.v1.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def schema_errors(data: object) -> Iterator[ValidationError]:
    """What does not fit, found as it is asked for: a hostile document has more errors than anyone wants to compute."""
    return _validator().iter_errors(data)


def resolve(schema: Schema) -> Schema:
    """`schema` with its `$ref` followed; keywords beside the reference win."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        schema = {**document_schema()["$defs"][name], **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


@cache
def operators() -> tuple[str, ...]:
    """The names of all operators, in the schema's order."""
    return tuple(document_schema()["$defs"]["step"]["properties"])


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(document_schema())
