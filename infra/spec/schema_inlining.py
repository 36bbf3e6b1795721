"""A schema without references: looking them up would take half of the time of validating."""

from typing import Any

Schema = dict[str, Any]


def inlined(schema: Schema) -> Schema:
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
