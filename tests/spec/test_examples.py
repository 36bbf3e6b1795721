"""The examples are documentation, test input and end-to-end cases at once: right and complete."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.compiler import build_nodes
from infra.model.problems import Severity
from infra.spec import load_documents
from infra.spec.schema import Schema, document_schema, operators, resolve

EXAMPLES = Path(__file__).parents[2] / "topology_schemas/examples"
FILES = sorted([*EXAMPLES.rglob("*.yaml"), *EXAMPLES.rglob("*.json")])
_SCHEMA = document_schema()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_a_topology_that_kafka_streams_accepts(file: Path) -> None:
    loaded = load_documents([file])

    assert loaded.problems == ()
    for document in loaded.documents:
        problems = build_nodes(document).problems
        assert [problem for problem in problems if problem.severity is not Severity.INFO] == []


def test_all_examples_live_together() -> None:
    loaded = load_documents([EXAMPLES])

    assert loaded.problems == ()
    assert len(loaded.documents) == len(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_editors_find_the_schema(file: Path) -> None:
    text = file.read_text()
    relative = "../" * len(file.relative_to(EXAMPLES).parts) + "topology.v1.schema.json"

    assert (file.parent / relative).is_file()
    if file.suffix == ".json":
        assert f'"$schema": "{relative}"' in text
    else:
        comment, story, *_ = text.splitlines()
        assert comment == f"# yaml-language-server: $schema={relative}"
        assert story.startswith("#")


def test_every_operator_and_every_option_is_shown() -> None:
    shown = {place for file in FILES for place in used(yaml.safe_load(file.read_text()), _SCHEMA, "document")}
    offered = {
        name.removeprefix("op."): schema.get("properties", {})
        for name, schema in _SCHEMA["$defs"].items()
        if name
        not in ("step", "config")  # the steps are counted as operators, configs are Kafka's to document
    }

    assert {operator for owner, operator in shown if owner == "step"} == set(operators())
    missing = {option for options in offered.values() for option in options} - {option for _, option in shown}
    assert missing == set()


def used(data: Any, schema: Schema, owner: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any part of a document
    """The options that a document uses, each with the definition that offers it."""
    owner = schema.get("$ref", owner).removeprefix("#/$defs/").removeprefix("op.")
    schema = resolve(schema)
    properties = schema.get("properties", {})
    if isinstance(data, list):
        for value in data:
            yield from used(value, schema["items"], owner)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in properties:
                yield owner, key
            yield from used(value, properties.get(key, schema.get("additionalProperties") or {}), owner)
