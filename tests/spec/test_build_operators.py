"""Each operator of the schema is built, and each of its options is read."""

from collections import UserDict
from typing import Any

import pytest

from headwater.model import operators as model
from headwater.spec.build_operators import _EXPRESSIONS, BUILDERS
from headwater.spec.schema import document_schema, operator_names, resolve_reference

SCHEMA = document_schema()


def test_the_code_builds_each_operator() -> None:
    assert {*BUILDERS, "split"} == set(operator_names())
    assert {kind.value for kind in model.TransformKind} <= set(operator_names())
    assert {name.removeprefix("op.") for name in SCHEMA["$defs"] if name.startswith("op.")} == set(
        operator_names()
    )


class RecordedOptions(UserDict[str, Any]):
    """Options that record which of them were read."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> object:
        self.read.add(key)
        return super().__getitem__(key)


_MINIMAL: dict[str, dict[str, Any]] = {
    "to": {},
    "addSource": {"name": "x", "topic": "x"},
    "addSink": {"name": "x", "parents": ["x"]},
    "addProcessor": {"name": "x", "parents": ["x"]},
    "addStateStore": {"name": "x"},
    "addGlobalStore": {"store": "x", "topic": "x"},
    "addReadOnlyStateStore": {"store": "x", "topic": "x", "sourceName": "x", "name": "y"},
    "connectProcessorAndStateStores": {"processor": "x", "stores": ["x"]},
    "suppress": {"until": "timeLimit"},
    **{name: {"topic": "x"} for name in ("stream", "table", "globalTable")},
    **{name: {"with": "x"} for name in ("join", "leftJoin", "outerJoin", "merge")},
}
OPTIONS = [
    (operator, option)
    for operator in BUILDERS
    for option in SCHEMA["$defs"][f"op.{operator}"]["properties"]
    if option not in ("from", "as")  # options of the step, not of the operator
]


@pytest.mark.parametrize(("operator", "option"), OPTIONS)
def test_each_option_is_read(operator: str, option: str) -> None:
    example = resolve_reference(SCHEMA["$defs"][f"op.{operator}"]["properties"][option])["examples"][0]
    needed = {"tumbling": {"size": 1}} if option == "emit" else _MINIMAL.get(operator, {})
    options = RecordedOptions({**needed, option: example})

    BUILDERS[operator](options)

    assert option in options.read


def test_all_expressions_of_the_schema_are_read_as_text() -> None:
    of_schema = {
        key
        for name, schema in document_schema()["$defs"].items()
        if name.startswith("op.")
        for key, part in schema["properties"].items()
        if part.get("$ref") == "#/$defs/expression"
    }
    assert of_schema == _EXPRESSIONS
