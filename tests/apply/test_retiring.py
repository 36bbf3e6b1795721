"""All topics of a retired application are listed before they are deleted: in plan, preview and comment."""

import json

import attrs
import pytest

from headwater.model.topology import Lifecycle
from headwater.planner import ActionKind, Plan
from headwater.report import plan_text
from headwater.report.plan_comment import plan_comment, read_preview
from headwater.report.plan_text import plan_messages
from tests.planner.simulated_cluster import SimulatedCluster, application, changelog

TOPICS = [changelog(f"orders-s{number:03}-changelog", 4) for number in range(150)]
NAMES = {topic.name for topic in TOPICS}


def steps() -> tuple[Plan, Plan]:
    """Return the plan with `lifecycle: retired`, and the plan after the document was removed."""
    compiled = application(topics=TOPICS)
    cluster = SimulatedCluster.set_up(compiled)
    retired = attrs.evolve(
        compiled, application=attrs.evolve(compiled.application, lifecycle=Lifecycle.RETIRED)
    )
    return cluster.up(retired), cluster.plan()


STEPS = [(0, ActionKind.RETIRE, "step 1 of 2"), (1, ActionKind.DELETE, "step 2 of 2")]


def listed(text: str, kind: ActionKind) -> set[str]:
    words = [line.split() for line in text.splitlines()]
    return {line[1] for line in words if len(line) > 1 and line[0] == kind.value}


@pytest.mark.parametrize(("step", "kind", "title"), STEPS)
def test_plan_lists_topics_to_delete(step: int, kind: ActionKind, title: str) -> None:
    text = plan_text(steps()[step])
    assert title in text
    assert listed(text, kind) == NAMES


@pytest.mark.parametrize(("step", "kind", "title"), STEPS)
def test_preview_lists_all_topics_to_delete(step: int, kind: ActionKind, title: str) -> None:
    (message,) = plan_messages(steps()[step], {})
    assert title in message
    assert listed(message, kind) == NAMES


@pytest.mark.parametrize(("step", "kind", "title"), STEPS)
def test_pull_request_comment_lists_all_topics_to_delete(step: int, kind: ActionKind, title: str) -> None:
    diagnostics = [{"severity": "info", "message": plan_text(steps()[step])}]
    comment = plan_comment(read_preview(json.dumps({"diagnostics": diagnostics})))
    assert title in comment
    assert listed(comment, kind) == NAMES


def test_nothing_is_deleted_while_the_group_has_members() -> None:
    compiled = application(topics=TOPICS)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.up(
        attrs.evolve(compiled, application=attrs.evolve(compiled.application, lifecycle=Lifecycle.RETIRED))
    )
    cluster.run_group("orders")
    assert not cluster.plan().is_applicable
    cluster.run_group("orders", members=0)
    assert cluster.plan().is_applicable
