"""A page for a JSON Schema: one table of keys for each definition. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import yaml

Schema = Mapping[str, Any]
_REFERENCE = "#/$defs/"
_TYPES = {"array": "list", "object": "mapping", "string": "text"}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "elements: at least {}",
    "minProperties": "keys: at least {}",
    "maxProperties": "keys: at most {}",
    "pattern": "pattern: `{}`",
}


def schema_page(schema: Schema, path: str) -> str:
    """Return the Markdown page of a schema that is stored at `path` of the repository.

    Definitions with keys get a table each; the others are rows of one table at the end.
    """
    return "\n".join(_SchemaPage(schema.get("$defs", {})).lines(schema, path))


@attrs.frozen
class _SchemaPage:
    definitions: Mapping[str, Schema]

    def lines(self, schema: Schema, path: str) -> Iterator[str]:
        yield from (f"# {schema['title']}", "", schema["description"], "")
        yield from (f"This page is generated from `{path}`.", "")
        yield from self._section(schema)
        for name, definition in self.definitions.items():
            if "properties" in definition:
                yield from (f"## {name}", "", definition.get("description", ""), "")
                yield from self._section(definition)
        values = [name for name, each in self.definitions.items() if "properties" not in each]
        if values:
            yield from ("## Values", "", "| name | type | meaning |", "|---|---|---|")
            for name in values:
                each = self.definitions[name]
                anchor = f'<a id="{_anchor(name)}"></a>'
                yield f"| {anchor}`{name}` | {_type(each)} | {self._meaning(each)} |"

    def _section(self, schema: Schema) -> Iterator[str]:
        for example in schema.get("examples", ()):
            yield from ("```yaml", yaml.safe_dump(example, sort_keys=False).removesuffix("...\n"), "```", "")
        required = schema.get("required", ())
        rows = {
            f"`{name}`{' (required)' if name in required else ''}": each
            for name, each in schema.get("properties", {}).items()
        }
        if isinstance(others := schema.get("additionalProperties"), Mapping):
            rows["other keys"] = others
        if rows:
            yield from ("| key | type | meaning |", "|---|---|---|")
            yield from (f"| {key} | {_type(each)} | {self._meaning(each)} |" for key, each in rows.items())
            yield ""

    def _meaning(self, schema: Schema) -> str:
        definition = self.definitions.get(schema.get("$ref", "").removeprefix(_REFERENCE), {})
        parts = [schema.get("description") or definition.get("description", "")]
        parts += [f"({text.format(schema[key])})" for key, text in _LIMITS.items() if key in schema]
        if "default" in schema:
            parts.append(f"Default: `{json.dumps(schema['default'])}`.")
        return " ".join(part for part in parts if part).replace("|", "\\|").replace("\n", " ")


def _type(schema: Schema) -> str:
    if (reference := schema.get("$ref")) is not None:
        name = reference.removeprefix(_REFERENCE)
        return f"[{name}](#{_anchor(name)})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    types = schema.get("type")
    if types is None:
        alternatives = (_type(each) for key in ("oneOf", "anyOf") for each in schema.get(key, ()))
        return " or ".join(dict.fromkeys(alternatives)) or "any"
    return " or ".join(_named(name, schema) for name in ([types] if isinstance(types, str) else types))


def _named(type_: str, schema: Schema) -> str:
    if type_ == "array" and isinstance(schema.get("items"), Mapping):
        return f"list of {_type(schema['items'])}"
    others = schema.get("additionalProperties")
    if type_ == "object" and "properties" not in schema and isinstance(others, Mapping):
        return f"mapping to {_type(others)}"
    return _TYPES.get(type_, type_)


def _anchor(name: str) -> str:
    """Return the id that the site generator gives to a heading of one word."""
    return name.lower().replace(".", "")
