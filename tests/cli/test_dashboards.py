"""`headwater dashboards`: the files of the wheel, with addresses of runbooks."""

import json
from pathlib import Path

import yaml

from headwater.cli.console import ExitCode
from tests.cli.conftest import Headwater

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
