"""Options that are expressions accept numbers and booleans."""

from headwater.spec.build_operators import _EXPRESSIONS
from headwater.spec.schema import document_schema


def test_all_expressions_of_the_schema_are_read_as_text() -> None:
    of_schema = {
        key
        for name, schema in document_schema()["$defs"].items()
        if name.startswith("op.")
        for key, part in schema["properties"].items()
        if part.get("$ref") == "#/$defs/expression"
    }
    assert of_schema == _EXPRESSIONS
