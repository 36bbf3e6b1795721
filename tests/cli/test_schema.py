"""`headwater schema` and the files of `headwater new`: editors find the schema without a network."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from headwater.cli.console import ExitCode
from headwater.spec import load_documents
from tests.cli.conftest import Headwater

_SCHEMAS = Path(__file__).parents[2] / "topology_schemas"
_WHEEL = "https://example.com/headwater-0.1.0-py3-none-any.whl#sha256=" + "0" * 64


@pytest.mark.parametrize(("kind", "file"), [("topology", "topology.v1"), ("policies", "policies.v1")])
def test_the_published_schema_is_written(headwater: Headwater, tmp_path: Path, kind: str, file: str) -> None:
    assert headwater("schema", kind, "-o", "schema.json").returncode == ExitCode.DONE
    written = json.loads((tmp_path / "schema.json").read_text())
    assert written == json.loads((_SCHEMAS / f"{file}.schema.json").read_text())
    Draft202012Validator.check_schema(written)


def test_documents_are_the_default(headwater: Headwater) -> None:
    assert json.loads(headwater("schema").stdout)["$id"] == "urn:headwater:topology.v1"


def test_a_new_repository_has_the_schema_that_its_document_names(
    headwater: Headwater, tmp_path: Path
) -> None:
    done = headwater("new", "shop", "--wheel", _WHEEL)
    assert done.returncode == ExitCode.DONE, done.stderr
    folder = tmp_path / "shop" / "topologies"
    first = (folder / "orders.yaml").read_text().splitlines()[0]
    schema = folder / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["$id"] == "urn:headwater:topology.v1"
    loaded = load_documents([folder])
    assert not loaded.problems
    assert len(loaded.documents) == 1, "the schema is no document"
