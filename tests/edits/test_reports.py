"""Reports of edits: text, JSON, Markdown, and comments on pull requests."""

import json
from collections.abc import Callable
from pathlib import Path

import attrs
import jsonschema
import pytest
from markdown_it import MarkdownIt

from headwater.cli.console import ExitCode
from headwater.planner.edits import Verdict
from headwater.report.edits.page import edit_page
from headwater.report.edits.texts import edit_markdown, edit_text
from headwater.report.edits.to_json import edit_json, read_edit
from headwater.report.markdown import LIMIT, grouped_names
from headwater.report.plan_comment import plan_comment, read_preview
from tests.drift.drift_cases import without_style
from tests.edits.change_command import FILTERED, SCHEMA, headwater, write
from tests.edits.sides import COUNT, GENERATED, edit

GOLDEN = Path(__file__).parent / "golden"
_CONFIG = "config: {auto.offset.reset: latest, num.stream.threads: 2, sasl.jaas.config: secret}"


@pytest.mark.parametrize("form", ["txt", "json", "md", "html"])
def test_each_format(form: str, golden: Callable[[Path, str], None]) -> None:
    after = FILTERED.replace("- reduce:", "- windowedBy: {session: {gap: 1m}}\n  - reduce: {name: sum}")
    after = after.replace("to: out", "to: results").replace("topic: in, ", "topic: in, offsetReset: latest, ")
    found = edit(GENERATED, after.replace("id: app", f"id: app, {_CONFIG}"))
    texts = {
        "txt": lambda: f"{edit_text(found)}\n",
        "json": lambda: json.dumps(edit_json(found), indent=2, ensure_ascii=False) + "\n",
        "md": lambda: edit_markdown(found),
        "html": lambda: without_style(edit_page(found)),
    }
    golden(GOLDEN / f"edited.{form}", texts[form]())


def test_json_is_valid_and_is_read_back() -> None:
    found = edit(
        GENERATED, FILTERED.replace("to: out", "to: results").replace("id: app", f"id: app, {_CONFIG}")
    )
    text = json.dumps(edit_json(found))

    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert read_edit(text) == found
    assert SCHEMA["$defs"]["topic"]["properties"]["verdict"]["enum"] == [each.value for each in Verdict]


def test_the_guide_explains_each_verdict() -> None:
    page = (Path(__file__).parents[2] / "docs/changing-topologies.md").read_text(encoding="utf-8")

    assert [verdict for verdict in Verdict if f"| `{verdict}` |" not in page] == []


def test_expressions_are_no_active_content() -> None:
    before = GENERATED.replace("- selectKey:", "- filter: {where: value > 1}\n  - selectKey:")
    after = before.replace("value > 1", "\"value = '<script>|`x`'\"")
    found = edit(before, after.replace("id: app", "id: app, config: {client.id: '<script>|`x`'}"))
    shown = MarkdownIt("commonmark").enable("table").render(edit_markdown(found))

    assert "<script>" in str(found.applications[0].operators[0].after)
    assert "<script>" in str(found.applications[0].settings[0].after)
    assert "<script>" not in shown
    assert "<script>" not in edit_page(found)


def test_markdown_has_no_active_content() -> None:
    hostile = FILTERED.replace("- reduce:", '- reduce: {materialized: "a.b_c"}').replace("id: app", "id: app")
    shown = MarkdownIt("commonmark").enable("table").render(edit_markdown(edit(GENERATED, hostile)))

    assert "<script" not in shown
    assert "<table>" in shown


def test_the_page_has_all_topics_and_no_active_content() -> None:
    hostile = attrs.evolve(
        edit(GENERATED, FILTERED), problems=(), cluster_id="<script>alert(1)</script>", added=("<b>x</b>",)
    )
    shown = edit_page(hostile)

    assert "<script" not in shown
    assert "<b>x</b>" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert [topic.topic for topic in hostile.topics if topic.topic not in shown] == []


_PREVIEW = json.dumps({"steps": [], "diagnostics": []})


def test_the_comment_on_a_pull_request_shows_the_edit_before_the_topics(tmp_path: Path) -> None:
    preview = write(tmp_path / "plan.json", _PREVIEW)
    before, after = (write(tmp_path / f"{n}.yaml", text) for n, text in enumerate((GENERATED, FILTERED)))
    report = tmp_path / "change.json"
    headwater(before, after, "--format", "json", "--output", str(report))

    done = headwater(preview, "--change", str(report), command="plan-comment")
    same = headwater(before, before, "--format", "json", "--output", str(report))
    unchanged = headwater(preview, "--change", str(report), command="plan-comment")

    assert done.exit_code == same.exit_code == ExitCode.DONE
    summary = "<details><summary>⚠️ Change of the topology: 2 stores lose their state in 1 application."
    assert summary in done.stdout
    assert "### 🟠 Kafka topics: no changes" in done.stdout
    assert "### ⚪ Kafka topics: no changes" in unchanged.stdout
    assert f"`materialized: {COUNT}`" in done.stdout
    assert "Change of the topology: nothing changes for state and topics" in unchanged.stdout
    assert "<details>" not in unchanged.stdout


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("- selectKey:", "- filter: {where: value > 1}\n  - selectKey:", "`value > 1` becomes `value > 2`"),
        ("id: app", "id: app, config: {state.dir: /1}", "`state.dir`"),
    ],
)
def test_the_comment_shows_edits_that_change_no_topic(old: str, new: str, shown: str) -> None:
    before = GENERATED.replace(old, new)
    found = edit(before, before.replace("> 1", "> 2").replace("/1", "/2"))
    text = plan_comment(read_preview(_PREVIEW), edit=found)

    assert not found.has_changes
    assert "<summary>Change of the topology: nothing changes for state and topics" in text
    assert shown in text


def test_a_report_of_a_version_without_settings_is_read() -> None:
    report = edit_json(edit(GENERATED, FILTERED))
    for application in report["applications"]:
        del application["settings"]

    assert read_edit(json.dumps(report)) == edit(GENERATED, FILTERED)


def test_a_large_edit_fits_into_a_comment() -> None:
    many = "\n".join(
        f"  - groupByKey: {{from: s, as: g{n}}}\n  - count: {{from: g{n}, name: c{n}}}" for n in range(400)
    )
    found = edit(f"{GENERATED}{many}\n", f"{FILTERED}{many}\n")

    text = plan_comment(read_preview(_PREVIEW), edit=found)

    assert len(text) <= LIMIT
    assert "402 stores" in text


def test_a_file_that_is_no_report_is_a_problem(tmp_path: Path) -> None:
    preview = write(tmp_path / "plan.json", _PREVIEW)

    done = headwater(preview, "--change", preview, command="plan-comment")

    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not the output of `headwater change --format json`" in done.stderr


def test_reasons_name_their_rows_unless_all_rows_have_the_same() -> None:
    assert list(grouped_names([("lost", "a"), ("lost", "b")])) == [("lost", "")]
    rows = [("lost", name) for name in "abcde"] + [("moved", "x|y")]
    assert list(grouped_names(rows)) == [("lost", " (`a`, `b`, `c` and 2 more)"), ("moved", " (`x\\|y`)")]
