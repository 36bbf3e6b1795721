"""The comment on a pull request, from recorded output of Pulumi (`previews/`)."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.report.drift.texts import drift_json
from headwater.report.markdown import LIMIT
from headwater.report.plan_comment import ReportedDrift, plan_comment, read_drift, read_preview
from tests.drift import drift_cases

GOLDEN = Path(__file__).parent / "golden"
PREVIEWS = Path(__file__).parent / "previews"
COMMENT_ID = "<!-- headwater plan-comment headwater/test -->"
_COMPONENT = "urn:pulumi:test::headwater::headwater:kafka:InternalTopics"


def _preview(name: str) -> str:
    return (PREVIEWS / f"{name}.json").read_text(encoding="utf-8")


def _step(application: str, topic: str, op: str = "create", before: int = 0) -> Mapping[str, Any]:
    state = {
        "inputs": {"partitions": 4},
        "outputs": {"partitions": before},
        "parent": f"{_COMPONENT}::{application}",
    }
    urn = f"{_COMPONENT}$kafka:index/topic:Topic::{topic}"
    return {"op": op, "urn": urn, "newState": state, **({"oldState": state} if before else {})}


def _document(steps: Sequence[Mapping[str, Any]], *messages: tuple[str, str]) -> str:
    diagnostics = [{"severity": severity, "message": text} for severity, text in messages]
    return json.dumps({"steps": steps, "diagnostics": diagnostics})


@pytest.mark.parametrize("name", ["create", "expand", "adopt", "refused"])
def test_a_comment_for_each_preview(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"comment-{name}.md", plan_comment(read_preview(_preview(name))))


def test_a_comment_with_drift_and_graphs(golden: Callable[[Path, str], None]) -> None:
    drift = read_drift(json.dumps(drift_json(drift_cases.changed())))
    steps = [
        _step("revenue-by-category", "revenue", "update", before=3),
        _step("fulfilment", "fulfilment-view-changelog"),
    ]
    golden(GOLDEN / "comment-drift.md", plan_comment(read_preview(_document(steps)), drift))


def test_a_comment_begins_with_its_id_and_a_summary() -> None:
    lines = plan_comment(read_preview(_preview("adopt"))).splitlines()
    assert lines[:2] == [COMMENT_ID, "### 🟢 Kafka topics: 2 to adopt, 3 to expand (8 partitions more)"]
    assert plan_comment(read_preview(_preview("refused"))).splitlines()[0] == COMMENT_ID


def test_a_comment_without_changes() -> None:
    same = {"op": "same", "urn": "urn:pulumi:test::headwater::pulumi:pulumi:Stack::headwater-test"}
    drift = read_drift(json.dumps(drift_json(drift_cases.clean())))
    text = plan_comment(read_preview(_document([same])), drift)
    assert text == (
        f"{COMMENT_ID}\n### ⚪ Kafka topics: no changes\n\nNo drift: 12 topics compared before this change.\n"
    )


def test_the_summary_counts_re_created_and_reconfigured_topics_of_the_plan() -> None:
    plan = "Plan for 1 application: 1 to re-create, 2 to reconfigure, 0 unchanged.\n\nshop\n  re-create  a\n"
    text = plan_comment(read_preview(_document([_step("shop", "a")], ("info", plan))))
    assert "1 to create, ⚠️ 1 of them re-created after a loss, 2 to reconfigure" in text.splitlines()[1]


def test_risks_of_a_preview_come_first() -> None:
    risks = "Changes that can lose data or move keys:\n  a: is deleted\n  b: 2 → 64 partitions: keys move"
    comment = plan_comment(read_preview(_document([_step("shop", "a")], ("info", f"info: {risks}"))))
    assert comment.splitlines()[1] == "### 🟠 Kafka topics: 1 to create"
    assert comment.splitlines()[3:7] == [
        "⚠️ **2 changes can lose data or move keys:**",
        "",
        "- `a: is deleted`",
        "- `b: 2 → 64 partitions: keys move`",
    ]


def test_errors_of_a_refused_plan_come_before_its_risks() -> None:
    risks = "info: Changes that can lose data or move keys:\n  a: is deleted"
    preview = read_preview(_document([], ("info", risks), ("error", "error[BlastRadius] Too many topics.")))
    comment = plan_comment(preview)
    assert comment.splitlines()[1].startswith("### 🔴 Kafka topics: refused, 1 error")
    assert comment.index("error[BlastRadius]") < comment.index("1 change can lose data")


def test_without_the_text_of_the_plan_the_comment_has_a_table() -> None:
    steps = [
        _step("shop", "a"),
        _step("shop", "b", "update", before=2),
        _step("shop", "c", "delete", before=4),
    ]
    text = plan_comment(read_preview(_document(steps)))
    assert "| `a` | create | 4 |\n| `b` | expand | 2 → 4 |\n| `c` | delete | 4 |" in text


@cache
def _large_drift() -> ReportedDrift:
    return read_drift(json.dumps(drift_json(drift_cases.large(1_000))))


@pytest.mark.parametrize("messages", [0, 3_000])
@pytest.mark.parametrize(("applications", "topics"), [(1, 10_000), (100, 100), (3_000, 2), (5, 200)])
def test_comments_on_large_plans_are_within_the_size_limit(
    applications: int, topics: int, messages: int
) -> None:
    steps = [
        _step(f"application-{number}", f"application-{number}-store-{topic}-changelog")
        for number in range(applications)
        for topic in range(topics)
    ]
    diagnostics = [("warning", f"warning[X] number {number}\n  why  it is so") for number in range(messages)]
    diagnostics += [("error", f"error[Y] number {number}\n  fix  do it") for number in range(messages)]
    text = plan_comment(read_preview(_document(steps, *diagnostics)), _large_drift())
    assert len(text) <= LIMIT
    assert text.startswith(f"{COMMENT_ID}\n### ")
    _assert_balanced(text)


def _assert_balanced(text: str) -> None:
    assert text.count("<details>") == text.count("</details>")
    assert len(re.findall(r"^```", text, re.MULTILINE)) % 2 == 0


def test_a_graph_that_is_too_large_is_omitted() -> None:
    graphs = {"shop": "flowchart LR\n" + "  a --> b\n" * 500, "till": "flowchart LR\n  a --> b\n"}
    drift = read_drift(json.dumps({**drift_json(drift_cases.clean()), "applications": []}))
    drift = type(drift)(drift.findings, graphs, drift.topics)
    text = plan_comment(read_preview(_document([_step("shop", "a"), _step("till", "b")])), drift)
    assert text.count("```mermaid") == 1


def test_hostile_texts_are_escaped() -> None:
    hostile = drift_cases.HOSTILE
    messages = [("error", f"{hostile}\n```\n<img src=x>"), ("warning", f"\x1b[31m```` {hostile}")]
    drift = read_drift(json.dumps(drift_json(drift_cases.hostile())))
    text = plan_comment(read_preview(_document([_step(hostile, f"{hostile}-changelog")], *messages)), drift)
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "<script" not in rendered
    assert "<img" not in rendered
    assert "@team" not in re.sub(r"<(code|pre)\b.*?</\1>", "", rendered, flags=re.DOTALL)
    _assert_balanced(re.sub(r"^(`{4,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL))


def test_a_hostile_stack_name_does_not_end_the_html_comment() -> None:
    step = {"op": "same", "urn": "urn:pulumi:a-->b::p--::pulumi:pulumi:Stack::x"}
    first = plan_comment(read_preview(_document([step]))).splitlines()[0]
    assert first == "<!-- headwater plan-comment p_-/a_-_b -->"


def _run(*arguments: str, **options: Any) -> Result:  # noqa: ANN401 - passed to click's runner
    return CliRunner().invoke(main, ["plan-comment", *arguments], prog_name="headwater", **options)


def test_the_command_reads_a_file_or_standard_input(tmp_path: Path) -> None:
    file = str(PREVIEWS / "create.json")
    drift = tmp_path / "drift.json"
    drift.write_text(json.dumps(drift_json(drift_cases.changed())), encoding="utf-8")
    output = tmp_path / "comment.md"
    from_file = _run(file)
    assert (from_file.exit_code, from_file.stderr) == (ExitCode.DONE, "")
    assert _run(input=_preview("create")).stdout == from_file.stdout
    assert _run("-", input=f"Previewing update\n{_preview('create')}").stdout == from_file.stdout
    assert _run(file, "--drift", str(drift), "--output", str(output)).stdout == ""
    assert "Drift before this change: 1 error" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "nothing", "{}", "{", '{"steps": 3}', '{"steps": [{}]}', '{"steps": [1]}']
)
def test_invalid_previews_are_problems(text: str) -> None:
    done = _run(input=text)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not the output of `headwater plan --format json` or `pulumi preview --json`" in done.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "applications": 1}'])
def test_invalid_drift_reports_are_problems(text: str, tmp_path: Path) -> None:
    file = tmp_path / "drift.json"
    file.write_text(text)
    done = _run(str(PREVIEWS / "create.json"), "--drift", str(file))
    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not the output of `headwater drift --format json`" in done.stderr
