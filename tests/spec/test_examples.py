"""The example documents: valid, and with each operator and each option."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.compiler import build_nodes
from headwater.model.problems import ProblemCode, Severity
from headwater.spec import load_documents
from headwater.spec.schema import Schema, document_schema, operator_names, resolve_reference
from tests.yaml_text import load_yaml

EXAMPLES = Path(__file__).parents[2] / "topology_schemas/examples"
FILES = sorted([*EXAMPLES.rglob("*.yaml"), *EXAMPLES.rglob("*.json")])
_SCHEMA = document_schema()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_a_valid_topology(file: Path) -> None:
    loaded = load_documents([file])

    assert loaded.problems == ()
    for document in loaded.documents:
        problems = [each for each in build_nodes(document).problems if each.severity is not Severity.INFO]
        if document.described is not None and document.described.unknown:
            assert {(each.code, each.severity) for each in problems} == {
                (ProblemCode.MISSING_DETAIL, Severity.WARNING)
            }
        else:
            assert problems == []


def test_all_examples_can_be_loaded_together() -> None:
    loaded = load_documents([EXAMPLES])

    assert loaded.problems == ()
    assert len(loaded.documents) == len(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_example_names_the_schema_for_editors(file: Path) -> None:
    text = file.read_text()
    relative = "../" * len(file.relative_to(EXAMPLES).parts) + "topology.v1.schema.json"

    assert (file.parent / relative).is_file()
    if file.suffix == ".json":
        assert f'"$schema": "{relative}"' in text
    else:
        comment, description, *_ = text.splitlines()
        assert comment == f"# yaml-language-server: $schema={relative}"
        assert description.startswith("#")


def test_the_examples_have_each_operator_and_each_option() -> None:
    shown = {option for file in FILES for option in used(load_yaml(file.read_text()), _SCHEMA, "document")}
    offered = {
        name.removeprefix("op."): schema.get("properties", {})
        for name, schema in _SCHEMA["$defs"].items()
        if name not in ("step", "config")  # steps are counted as operators; Kafka documents the configs
    }

    assert {operator for owner, operator in shown if owner == "step"} == set(operator_names())
    missing = {option for options in offered.values() for option in options} - {option for _, option in shown}
    assert missing == set()


def used(data: Any, schema: Schema, owner: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any part of a document
    """Yield the options in a part of a document, each with the name of its definition."""
    owner = schema.get("$ref", owner).removeprefix("#/$defs/").removeprefix("op.")
    schema = resolve_reference(schema)
    properties = schema.get("properties", {})
    if isinstance(data, list):
        for value in data:
            yield from used(value, schema["items"], owner)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in properties:
                yield owner, key
            yield from used(value, properties.get(key, schema.get("additionalProperties") or {}), owner)
