"""The JSON of a plan, its digest, and the comment that is written from it."""

import json
from importlib.resources import files
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from headwater.model.cluster import LiveTopic
from headwater.planner import ActionKind, ConfigChange, Plan, SettingChange, TopicAction
from headwater.planner.plans import ApplicationPlan
from headwater.report.plan_comment import plan_comment, read_plan
from headwater.report.plan_json import plan_digest, plan_json, read_approved, topic_differences
from tests.report.planned import PLANS

MANY = 100
SCHEMA = json.loads(files("topology_schemas").joinpath("plan.v1.schema.json").read_text("utf-8"))


def _plan(partitions: int, *, topic_id: str = "id", retention: str = "604800000") -> Plan:
    """Return a plan that expands many topics and reconfigures the one that a list names last."""
    expanded = tuple(
        TopicAction(
            kind=ActionKind.EXPAND,
            name=f"app-{number:03}-changelog",
            partitions=partitions,
            config={"cleanup.policy": "compact"},
            live=LiveTopic(f"app-{number:03}-changelog", topic_id, 2, 1),
        )
        for number in range(MANY)
    )
    change = ConfigChange("retention.ms", "604800000", retention)
    last = TopicAction(
        kind=ActionKind.RECONFIGURE,
        name="app-zz-repartition",
        partitions=2,
        config={"retention.ms": retention},
        live=LiveTopic("app-zz-repartition", "id", 2, 1),
        changes=(change,),
    )
    return Plan((ApplicationPlan("app", None, (*expanded, last), None),), (), "cluster")


def _comment(plan: Plan, limit: int = 65_536) -> str:
    return plan_comment(read_plan(json.dumps(plan_json(plan, "organization/shop/production"))), limit=limit)


@pytest.mark.parametrize("name", PLANS)
def test_json_of_each_plan_can_be_read_again(name: str) -> None:
    plan = PLANS[name]()
    document = json.loads(json.dumps(plan_json(plan, "shop/production")))
    Draft202012Validator(SCHEMA).validate(document)
    assert document["digest"] == plan_digest(plan) == read_approved(json.dumps(document)).digest
    assert document["isApplicable"] is plan.is_applicable
    comment = _comment(plan)
    assert comment.startswith("<!-- headwater plan-comment shop/production -->\n")
    assert f"`{plan_digest(plan)}`" in comment
    assert ("refused" in comment.splitlines()[1]) is not plan.is_applicable


@pytest.mark.parametrize(
    "other",
    [
        _plan(65),
        _plan(64, topic_id="another"),
        _plan(64, retention="1"),
        attrs.evolve(_plan(64), cluster_id="b"),
    ],
)
def test_every_value_of_a_plan_is_in_its_digest(other: Plan) -> None:
    """Also one behind a hundred topics, and the id of a topic that was created again under its name."""
    assert plan_digest(other) != plan_digest(_plan(64))


def test_each_changed_setting_is_in_the_json_and_on_a_line_of_the_text() -> None:
    digests = [f"sha256:{digit * 16}" for digit in "01"]
    changes: dict[str, list[str | None]] = {f"option.{number}": [str(number), None] for number in range(30)}
    changes |= {"acks": [None, "all"], "my.option": [*digests]}
    plan = Plan(
        (
            ApplicationPlan(
                "app",
                None,
                (),
                None,
                settings=tuple(SettingChange(key, before, after) for key, (before, after) in changes.items()),
            ),
        ),
        (),
        "cluster",
    )
    document = plan_json(plan, "shop/production")
    Draft202012Validator(SCHEMA).validate(document)
    assert document["plan"]["applications"]["app"]["settings"] == changes
    lines = document["texts"]["app"].splitlines()
    assert lines[3] == "  setting      option.0: 0 → unset"
    assert lines[-2:] == ["  setting      acks: unset → all", "  setting      my.option: changed"]
    assert sum(line.startswith("  setting ") for line in lines) == len(changes)
    assert "my.option: changed" in _comment(plan)
    assert "sha256:0000000000000000" not in _comment(plan)


def test_values_that_change_all_the_time_are_not_in_the_digest() -> None:
    plan = _plan(64)
    (application,) = plan.applications
    counted = tuple(
        attrs.evolve(action, live=attrs.evolve(action.live, records=7, is_empty=False))
        for action in application.actions
        if action.live is not None
    )
    assert plan_digest(attrs.evolve(plan, applications=(attrs.evolve(application, actions=counted),))) == (
        plan_digest(plan)
    )


def test_different_topics_are_named() -> None:
    approved = read_approved(json.dumps(plan_json(_plan(64), "")))
    assert topic_differences(approved, _plan(64)) == ()
    assert topic_differences(approved, _plan(64, retention="1")) == ("app-zz-repartition",)
    assert topic_differences(read_approved(approved.digest), _plan(65)) == ()


@pytest.mark.parametrize(
    "text",
    ["", "sha256:abc", "{}", "[]", "null", '{"plan": {}}', '{"plan": {"applications": 1}}', "[" * 100_000],
)
def test_what_is_no_plan_approves_nothing(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSONDecodeError is one, too
        read_approved(text)


def test_a_changed_digest_in_the_file_does_not_count() -> None:
    document: dict[str, Any] = plan_json(_plan(64), "") | {"digest": "sha256:" + "0" * 64}
    assert read_approved(json.dumps(document)).digest == plan_digest(_plan(64))


@pytest.mark.parametrize("limit", [65_536, 8_000, 3_000])
def test_the_comment_shows_first_what_can_lose_data_and_counts_the_rest(limit: int) -> None:
    comment = _comment(_plan(64, retention="1"), limit)
    assert len(comment) <= limit
    lines = comment.splitlines()
    assert lines[3] == f"⚠️ **{MANY + 1} changes can lose data or move keys:**"
    assert lines[5] == "- `app-zz-repartition: retention.ms: 604800000 → 1`"
    shown = sum("keys move to other partitions" in line and line.startswith("- `app-") for line in lines)
    assert shown == MANY or f"**{MANY - shown} more** that are not shown here" in comment
