"""The published JSON Schemas, the only definition of what documents and policy files may contain."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

Schema = dict[str, Any]


TOPOLOGY = "topology.v1"


@cache
def published_schema(name: str) -> Schema:
    """Return `topology_schemas/<name>.schema.json`, from a clone or an installed package."""
    text = files("topology_schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def document_schema() -> Schema:
    """Return the schema of topology documents."""
    return published_schema(TOPOLOGY)


def resolve(schema: Schema) -> Schema:
    """Return `schema` with its `$ref` resolved; keywords next to the reference have priority."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**document_schema()["$defs"][name], **siblings}
    return schema


@cache
def operators() -> tuple[str, ...]:
    """Return the names of all operators, in the order of the schema."""
    return tuple(document_schema()["$defs"]["step"]["properties"])


def matches(pattern: str, text: str) -> bool:
    """Return whether `text` matches as in JSON Schema, where `$` is only the end of the text."""
    return re.search(pattern.replace("$", r"\Z"), text) is not None


def is_whole(value: object) -> bool:
    """Return whether the value is a whole number. JSON Schema would also accept 3.0 and 1e3."""
    return isinstance(value, int) and not isinstance(value, bool)
