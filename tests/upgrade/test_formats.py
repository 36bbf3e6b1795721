"""The formats of an upgrade report: complete texts and valid documents."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt

from headwater.planner.upgrade import ChangeKind, State, Upgrade
from headwater.report.upgrade import upgrade_json, upgrade_markdown, upgrade_text
from tests.upgrade import upgrade_cases

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    case.__name__: case for case in (upgrade_cases.clean, upgrade_cases.changed, upgrade_cases.incomplete)
}
FORMATS: dict[str, Callable[[Upgrade], str]] = {
    "txt": lambda upgrade: f"{upgrade_text(upgrade)}\n",
    "json": lambda upgrade: json.dumps(upgrade_json(upgrade), indent=2, ensure_ascii=False) + "\n",
    "md": upgrade_markdown,
}
SCHEMA = json.loads(files("topology_schemas").joinpath("upgrade.v1.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_each_format_of_each_case(case: str, form: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{case}.{form}", FORMATS[form](CASES[case]()))


@pytest.mark.parametrize("case", CASES.values())
def test_json_is_valid_for_its_schema(case: Callable[[], Upgrade]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(upgrade_json(case()))


def test_the_schema_has_each_kind_of_change_and_of_state() -> None:
    assert SCHEMA["$defs"]["change"]["properties"]["kind"]["enum"] == [kind.value for kind in ChangeKind]
    assert SCHEMA["$defs"]["state"]["enum"] == [state.value for state in State]


def test_the_guide_explains_each_kind_of_change() -> None:
    page = (Path(__file__).parents[2] / "docs/upgrade.md").read_text(encoding="utf-8")

    assert [kind for kind in ChangeKind if f"`{kind}`" not in page] == []


def test_markdown_has_no_active_content() -> None:
    shown = MarkdownIt("commonmark").enable("table").render(upgrade_markdown(upgrade_cases.changed()))

    assert "<script" not in shown
    assert shown.count("<table>") == 4
