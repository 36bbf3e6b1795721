"""The published JSON Schema: the one place that says what a document may hold."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import attrs
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from infra.spec.locations import PathPart

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


_TOPOLOGY = "topology.v1"


@cache
def published_schema(name: str) -> Schema:
    """`topology_schemas/<name>.schema.json`, in a clone or an installed package alike."""
    text = files("topology_schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def document_schema() -> Schema:
    """The schema of topology documents."""
    return published_schema(_TOPOLOGY)


def find_violations(data: Any, schema: str = _TOPOLOGY) -> Iterator[Violation]:  # noqa: ANN401 - any value
    """Found as they are asked for: a hostile document has more than anyone wants to compute."""
    for error in _validator(schema).iter_errors(data):
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


def matches(pattern: str, text: str) -> bool:
    """Whether `text` matches as JSON Schema means it: `$` is the very end, in Python the line's."""
    return re.search(pattern.replace("$", r"\Z"), text) is not None


def _pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    if isinstance(value, str) and not matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _is_whole(_: object, value: object) -> bool:
    """JSON Schema would take 3.0 and 1e3 for whole numbers, too."""
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def _validator(schema: str) -> Validator:
    kind = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {"pattern": _pattern},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
    )
    validator: Validator = kind(_inlined(published_schema(schema)))
    return validator


def _inlined(schema: Schema) -> Schema:
    """`schema` with each `$ref` replaced by the definition, shared, so that steps may hold steps.

    Where a reference has a description of its own, the definition's is kept as `$comment`.
    """
    inlining = _Inlining(schema["$defs"])
    return {key: inlining.part(part) for key, part in schema.items() if key != "$defs"}


class _Inlining:
    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self._made: dict[str, Schema] = {}

    def part(self, part: Any) -> Any:  # noqa: ANN401 - any part of a schema
        if isinstance(part, list):
            return [self.part(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return self._referred(part["$ref"].removeprefix("#/$defs/"), part)
        return {key: inner if key == "examples" else self.part(inner) for key, inner in part.items()}

    def _referred(self, name: str, part: Schema) -> Schema:
        if name not in self._made:
            self._made[name] = {}
            self._made[name].update(self.part(self._definitions[name]))
        made = self._made[name]
        beside = {key: value for key, value in part.items() if key != "$ref"}
        if not (made and beside):  # what is empty yet is being made: it holds itself
            return made
        return {**made, **beside, "$comment": made["description"]}
