"""The published JSON Schemas, the only definition of what documents and policy files may contain."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import attrs
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from headwater.spec.locations import PathPart


def topology_schemas() -> Traversable:
    """Return the folder `topology_schemas`, which the wheel has inside the package `headwater`."""
    installed = files("headwater").joinpath("topology_schemas")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "topology_schemas"


Schema = dict[str, Any]


@attrs.frozen
class Violation:
    """What does not fit a schema: `value` at `path` violates the rule `keyword: requires` of `schema`."""

    path: tuple[PathPart, ...]
    keyword: str
    requires: Any
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
    """Return `topology_schemas/<name>.schema.json`, from a clone or an installed package."""
    text = topology_schemas().joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def document_schema() -> Schema:
    """Return the schema of topology documents."""
    return published_schema(_TOPOLOGY)


def find_violations(data: Any, schema: str = _TOPOLOGY) -> Iterator[Violation]:  # noqa: ANN401 - any value
    """Yield violations lazily: a malicious document may have too many to compute."""
    for error in _validator_of(schema).iter_errors(data):
        yield Violation(
            path=tuple(error.absolute_path),
            keyword=str(error.validator),
            requires=error.validator_value,
            value=error.instance,
            schema=error.schema if isinstance(error.schema, dict) else {},
            schema_path=tuple(error.absolute_schema_path),
        )


def resolve_reference(schema: Schema) -> Schema:
    """Return `schema` with its `$ref` resolved; keywords next to the reference have priority."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**document_schema()["$defs"][name], **siblings}
    return schema


@cache
def operator_names() -> tuple[str, ...]:
    """Return the names of all operators, in the order of the schema."""
    return tuple(document_schema()["$defs"]["step"]["properties"])


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether `text` matches as in JSON Schema, where `$` is only the end of the text."""
    return re.search(pattern.replace("$", r"\Z"), text) is not None


def _check_pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    if isinstance(value, str) and not matches_pattern(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _is_whole(_: object, value: object) -> bool:
    """Return whether the value is a whole number. JSON Schema would also accept 3.0 and 1e3."""
    return isinstance(value, int) and not isinstance(value, bool)


class _Parts:
    """The keywords that check the parts of a value, with one validator for each part of a schema.

    `jsonschema` creates a validator for each value, which takes half of the time of a check.
    """

    def __init__(self) -> None:
        self._validators: dict[int, Validator] = {}

    def properties(
        self, validator: Validator, properties: Schema, value: object, _: object
    ) -> Iterator[ValidationError]:
        if isinstance(value, dict):
            for name, schema in properties.items():
                if name in value:
                    for error in self._validator(validator, schema).iter_errors(value[name]):
                        error.schema_path.appendleft(name)
                        error.path.appendleft(name)
                        yield error

    def items(
        self, validator: Validator, schema: Schema, value: object, _: object
    ) -> Iterator[ValidationError]:
        if isinstance(value, list):
            each = self._validator(validator, schema)
            for index, item in enumerate(value):
                for error in each.iter_errors(item):
                    error.path.appendleft(index)
                    yield error

    def _validator(self, validator: Validator, schema: Schema) -> Validator:
        found = self._validators.get(id(schema))
        if found is None:  # it keeps `schema`, so no other part gets its id
            found = self._validators[id(schema)] = validator.evolve(schema=schema)
        return found


@cache
def _validator_of(schema: str) -> Validator:
    parts = _Parts()
    kind = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {"pattern": _check_pattern, "properties": parts.properties, "items": parts.items},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
    )
    validator: Validator = kind(_inline_references(published_schema(schema)))
    return validator


def _inline_references(schema: Schema) -> Schema:
    """Return `schema` with each `$ref` replaced by the definition: lookups would take half of the time.

    Definitions are shared, so that steps can contain steps. If a reference has its own description, the
    description of the definition is kept as `$comment`.
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
            return self._inlined_definition(part["$ref"].removeprefix("#/$defs/"), part)
        return {key: inner if key == "examples" else self.part(inner) for key, inner in part.items()}

    def _inlined_definition(self, name: str, part: Schema) -> Schema:
        if name not in self._made:
            self._made[name] = {}
            self._made[name].update(self.part(self._definitions[name]))
        made = self._made[name]
        siblings = {key: value for key, value in part.items() if key != "$ref"}
        if not (made and siblings):  # what is empty yet is being made: it holds itself
            return made
        return {**made, **siblings, "$comment": made["description"]}
