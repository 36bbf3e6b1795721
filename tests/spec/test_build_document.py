"""Valid documents with all parts of the format, and the typed values that are read from them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.model.operators import Split
from headwater.model.problems import Location
from headwater.model.topology import Protocol
from headwater.spec import load_documents, load_text, parse_document
from tests.spec.rendering import document_text

FOLDER = Path(__file__).parents[1] / "fixtures/documents/valid"
DOCUMENTS = sorted(file for file in FOLDER.iterdir() if file.suffix in (".yaml", ".json"))


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_documents_are_read_as_typed_values(file: Path, golden: Callable[[Path, str], None]) -> None:
    loaded = load_documents([file])

    assert loaded.problems == ()
    golden(file.with_suffix(".txt"), "\n".join(map(document_text, loaded.documents)))


def test_steps_have_their_location() -> None:
    text = """\
application: {id: shop}
topology:
  - stream: {topic: orders}
  - split:
      branches:
        - then:
            - to: {topic: a}
"""
    (document,) = load_text(text, "shop.yaml").documents
    split = document.steps[1].operator
    assert isinstance(split, Split)
    (inner,) = split.branches[0].then

    assert document.application.at == Location("shop.yaml", 1, 19, "/application/id")
    assert [step.at for step in document.steps] == [
        Location("shop.yaml", 3, 5, "/topology/0/stream"),
        Location("shop.yaml", 4, 5, "/topology/1/split"),
    ]
    assert inner.at == Location("shop.yaml", 7, 15, "/topology/1/split/branches/0/then/0/to")


def test_a_document_in_memory_is_read_like_a_file() -> None:
    data = {
        "application": {"id": "shop"},
        "topology": [{"stream": {"topic": "orders", "as": "o"}}, {"peek": None}],
    }
    (parsed,) = parse_document(data).documents
    (loaded,) = load_text(
        "{application: {id: shop}, topology: [{stream: {topic: orders, as: o}}, {peek: }]}", ""
    ).documents

    assert document_text(parsed) == document_text(loaded)


def test_mistakes_in_memory_have_a_pointer_as_location() -> None:
    (problem,) = parse_document({"application": {"id": "a"}, "topology": [{"strem": {}}]}).problems

    assert problem.location == Location("", 0, 0, "/topology/0/strem")
    assert problem.fix == "Did you mean `stream`?"


def test_values_that_json_does_not_have_raise_an_error() -> None:
    with pytest.raises(TypeError):
        parse_document({"application": object()})
    with pytest.raises(ValueError, match="not JSON compliant"):
        parse_document({"application": float("nan")})


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_without_libyaml_the_same_documents_are_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = load_documents([file])
    monkeypatch.setattr("headwater.spec.yaml_text._Loader", yaml.BaseLoader)

    assert load_documents([file]) == fast


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        ({}, Protocol.CLASSIC),
        ({"protocol": "streams"}, Protocol.STREAMS),
        ({"config": {"group.protocol": "Streams"}}, Protocol.STREAMS),
        ({"protocol": "classic", "config": {"group.protocol": "streams"}}, Protocol.CLASSIC),
    ],
)
def test_the_protocol_can_be_declared_as_config(options: dict[str, Any], protocol: Protocol) -> None:
    document = {"application": {"id": "a", **options}, "topology": [{"stream": {"topic": "t"}}]}
    assert parse_document(document).documents[0].application.protocol is protocol
