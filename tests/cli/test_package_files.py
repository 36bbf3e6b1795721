"""The files of the package that commands write: schemas for editors, dashboards, alerts with runbooks."""

import json
from pathlib import Path

import pytest
import yaml
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


_DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_files_are_copied(headwater: Headwater, tmp_path: Path) -> None:
    done = headwater("dashboards", "-o", "monitoring/new")
    assert done.returncode == ExitCode.DONE
    names = {"headwater-agent.json", "headwater-runtime.json", "headwater-alerts.yaml"}
    folder = tmp_path / "monitoring" / "new"
    assert {file.name for file in folder.iterdir()} == names
    assert {line.rpartition("/")[2] for line in done.stdout.splitlines()} == names
    alerts = (_DEPLOY / "prometheus" / "headwater-alerts.yaml").read_bytes()
    assert (folder / "headwater-alerts.yaml").read_bytes() == alerts
    assert json.loads((folder / "headwater-agent.json").read_text())["title"]


def test_alerts_get_the_addresses_of_their_runbooks(headwater: Headwater, tmp_path: Path) -> None:
    headwater("dashboards", "-o", "monitoring", "--docs", "https://docs.example.com/headwater/")
    rules = yaml.safe_load((tmp_path / "monitoring" / "headwater-alerts.yaml").read_text())
    annotations = [rule["annotations"] for group in rules["groups"] for rule in group["rules"]]
    for each in annotations:
        page = each["runbook"].removeprefix("docs/").replace(".md", ".html")  # as `make docs` writes them
        assert each["runbook_url"] == f"https://docs.example.com/headwater/{page}"


def test_a_folder_that_cannot_be_created_is_an_error(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = headwater("dashboards", "-o", "file/monitoring")
    assert done.returncode == ExitCode.PROBLEMS
    assert "cannot be created" in done.stderr
