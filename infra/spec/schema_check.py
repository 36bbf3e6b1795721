"""A quick check of whether a value fits a schema; `violations` says why one does not.

Each part of a schema becomes a function when a value needs it. A test compares the results with those of the
validator of `violations`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from infra.spec.schema import Schema, is_whole, matches, published_schema

Check = Callable[[Any], bool]
ANNOTATIONS = frozenset(
    {"$schema", "$id", "$defs", "$comment", "title", "description", "examples", "default"}
)

_MOST_COMPARED = 100
"""Items of a list of mappings: each is compared with all others."""


def fits(value: Any, schema: str) -> bool:  # noqa: ANN401 - any value
    """Return whether `value` fits the schema of this name; False, too, if that cannot be decided here."""
    try:
        return _check(schema)(value)
    except _UndecidedError:
        return False


class _UndecidedError(Exception):
    """The check does not know the answer."""


@cache
def _check(schema: str) -> Check:
    published = published_schema(schema)
    return _Checks(published.get("$defs", {})).of(published)


class _Checks:
    """Makes checks of schemas with these definitions."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = _Parts(definitions, self.of)
        self._schemas = definitions

    def of(self, schema: Schema | bool) -> Check:  # noqa: FBT001 - JSON Schema's own values
        """Return the check of a schema.

        Raises:
            KeyError: The schema has a keyword that is not known here.
        """
        if isinstance(schema, bool):
            return lambda _: schema
        if "$ref" in schema:
            return self._referred(schema["$ref"].removeprefix("#/$defs/"), schema)
        checks = [_KEYWORDS[key](self, schema) for key in schema if key not in ANNOTATIONS]
        return checks[0] if len(checks) == 1 else _all(checks)

    def parts(self, schemas: Mapping[str, Schema]) -> "_Parts":
        return _Parts(schemas, self.of)

    def _referred(self, name: str, schema: Schema) -> Check:
        """Keywords next to a reference have priority over those of the definition."""
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        if siblings.keys() <= ANNOTATIONS:
            return self._definitions[name]
        return self.of({**self._schemas[name], **siblings})


class _Parts(dict[str, Check]):
    """Checks by name, made when they are first used: a document uses few operators."""

    def __init__(self, schemas: Mapping[str, Schema], of: Callable[[Schema], Check]) -> None:
        super().__init__()
        self.schemas = schemas
        self._of = of

    def __missing__(self, name: str) -> Check:
        check = self[name] = self._of(self.schemas[name])
        return check


def _all(checks: list[Check]) -> Check:
    def check(value: Any) -> bool:  # noqa: ANN401 - any value
        for each in checks:  # noqa: SIM110 - a generator takes twice as long
            if not each(value):
                return False
        return True

    return check


_TYPES: Mapping[str, Check] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": is_whole,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _type(_: _Checks, schema: Schema) -> Check:
    types = schema["type"]
    if isinstance(types, str):
        return _TYPES[types]
    checks = [_TYPES[name] for name in types]
    return lambda value: any(check(value) for check in checks)


def _properties(checks: _Checks, schema: Schema) -> Check:
    parts = checks.parts(schema["properties"])

    def check(value: Any) -> bool:  # noqa: ANN401 - same
        if isinstance(value, dict):
            for key, part in value.items():
                if key in parts.schemas and not parts[key](part):
                    return False
        return True

    return check


def _additional_properties(checks: _Checks, schema: Schema) -> Check:
    declared = schema.get("properties", {}).keys()
    if schema["additionalProperties"] is False:
        return lambda value: not isinstance(value, dict) or value.keys() <= declared
    others = checks.of(schema["additionalProperties"])
    return lambda value: (
        not isinstance(value, dict) or all(others(part) for key, part in value.items() if key not in declared)
    )


def _property_names(checks: _Checks, schema: Schema) -> Check:
    names = checks.of(schema["propertyNames"])
    return lambda value: not isinstance(value, dict) or all(map(names, value))


def _required(_: _Checks, schema: Schema) -> Check:
    required = frozenset(schema["required"])
    return lambda value: not isinstance(value, dict) or required <= value.keys()


def _dependent_required(_: _Checks, schema: Schema) -> Check:
    dependent = {name: frozenset(names) for name, names in schema["dependentRequired"].items()}
    return lambda value: (
        not isinstance(value, dict)
        or all(names <= value.keys() for name, names in dependent.items() if name in value)
    )


def _dependent_schemas(checks: _Checks, schema: Schema) -> Check:
    dependent = checks.parts(schema["dependentSchemas"])
    return lambda value: (
        not isinstance(value, dict)
        or all(dependent[name](value) for name in dependent.schemas if name in value)
    )


def _items(checks: _Checks, schema: Schema) -> Check:
    items = checks.of(schema["items"])
    return lambda value: not isinstance(value, list) or all(map(items, value))


def _unique_items(_: _Checks, schema: Schema) -> Check:
    if schema["uniqueItems"] is not True:
        return lambda _: True

    def check(value: Any) -> bool:  # noqa: ANN401 - same
        if not isinstance(value, list):
            return True
        if all(isinstance(item, str) for item in value):
            return len(set(value)) == len(value)
        # Values that are equal in Python may differ in JSON: 1 and true.
        if len(value) > _MOST_COMPARED or any(item in value[:index] for index, item in enumerate(value)):
            raise _UndecidedError
        return True

    return check


def _enum(_: _Checks, schema: Schema) -> Check:
    return _one_of_values(schema["enum"])


def _const(_: _Checks, schema: Schema) -> Check:
    return _one_of_values([schema["const"]])


def _one_of_values(allowed: list[Any]) -> Check:
    # In JSON, true is not 1.
    return lambda value: any(
        value == each and isinstance(value, bool) is isinstance(each, bool) for each in allowed
    )


def _if(checks: _Checks, schema: Schema) -> Check:
    condition, then = checks.of(schema["if"]), checks.of(schema["then"])
    return lambda value: not condition(value) or then(value)


def _all_of(checks: _Checks, schema: Schema) -> Check:
    return _all([checks.of(part) for part in schema["allOf"]])


def _any_of(checks: _Checks, schema: Schema) -> Check:
    parts = [checks.of(part) for part in schema["anyOf"]]
    return lambda value: any(part(value) for part in parts)


def _one_of(checks: _Checks, schema: Schema) -> Check:
    parts = [checks.of(part) for part in schema["oneOf"]]
    return lambda value: sum(part(value) for part in parts) == 1


def _not(checks: _Checks, schema: Schema) -> Check:
    part = checks.of(schema["not"])
    return lambda value: not part(value)


def _pattern(_: _Checks, schema: Schema) -> Check:
    pattern = schema["pattern"]
    return lambda value: not isinstance(value, str) or matches(pattern, value)


def _limit(keyword: str, kind: type | Check, is_beyond: Callable[[Any, Any], bool]) -> "_Keyword":
    is_kind = kind if not isinstance(kind, type) else (lambda value: isinstance(value, kind))

    def make(_: _Checks, schema: Schema) -> Check:
        limit = schema[keyword]
        return lambda value: not (is_kind(value) and is_beyond(value, limit))

    return make


_Keyword = Callable[[_Checks, Schema], Check]
_KEYWORDS: Mapping[str, _Keyword] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "items": _items,
    "uniqueItems": _unique_items,
    "enum": _enum,
    "const": _const,
    "if": _if,
    "then": lambda *_: lambda _: True,  # checked with `if`
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "pattern": _pattern,
    "minLength": _limit("minLength", str, lambda value, limit: len(value) < limit),
    "maxLength": _limit("maxLength", str, lambda value, limit: len(value) > limit),
    "minItems": _limit("minItems", list, lambda value, limit: len(value) < limit),
    "minProperties": _limit("minProperties", dict, lambda value, limit: len(value) < limit),
    "maxProperties": _limit("maxProperties", dict, lambda value, limit: len(value) > limit),
    "minimum": _limit("minimum", _TYPES["number"], lambda value, limit: value < limit),
    "maximum": _limit("maximum", _TYPES["number"], lambda value, limit: value > limit),
}
