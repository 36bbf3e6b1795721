"""Runs `headwater change`, and reads its JSON."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner, Result

from headwater.cli.main import main
from tests.edits.sides import GENERATED

SCHEMA = json.loads(files("topology_schemas").joinpath("change.v1.schema.json").read_text("utf-8"))


FILTERED = GENERATED.replace("- selectKey:", "- filter:\n  - selectKey:")


NAMED = GENERATED.replace("- count:", "- count: {materialized: counts}").replace(
    "- reduce:", "- reduce: {materialized: totals}"
)


def headwater(*arguments: str, command: str = "change") -> Result:
    return CliRunner().invoke(main, (command, *arguments), prog_name="headwater")


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {each["topic"]: each["verdict"] for each in found["applications"][0]["topics"]}
