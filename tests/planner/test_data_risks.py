"""Which changes of a plan can lose data or move keys."""

import attrs
import pytest

from headwater.model.cluster import LiveTopic
from headwater.planner import ActionKind, ConfigChange, TopicAction
from headwater.planner.data_risks import RiskKind, data_risks
from headwater.planner.plans import ApplicationPlan, Plan
from tests.report.planned import PLANS

_LIVE = LiveTopic("t", "id", 4, 1)


def planned(*actions: TopicAction) -> Plan:
    return Plan((ApplicationPlan("app", None, actions, None),), (), "cluster")


def changed(key: str, live: str | None, declared: str | None) -> Plan:
    change = ConfigChange(key, live, declared)
    return planned(
        TopicAction(
            kind=ActionKind.RECONFIGURE, name="t", partitions=4, config={}, live=_LIVE, changes=(change,)
        )
    )


@pytest.mark.parametrize(
    ("key", "live", "declared", "is_risk"),
    [
        ("retention.ms", "604800000", "1", True),
        ("retention.ms", "1", "604800000", False),
        ("retention.ms", "-1", "604800000", True),
        ("retention.ms", "604800000", "-1", False),
        ("retention.ms", None, "604800000", True),
        ("retention.ms", None, "-1", False),
        ("retention.ms", "604800000", None, True),
        ("retention.ms", "604800000", "text", True),
        ("retention.bytes", "-1", "1024", True),
        ("cleanup.policy", "delete", "compact", True),
        ("cleanup.policy", "compact", "delete", True),
        ("cleanup.policy", "compact", "compact,delete", True),
        ("delete.retention.ms", "86400000", "1", True),
        ("min.compaction.lag.ms", "86400000", "0", True),
        ("max.compaction.lag.ms", None, "1", True),
        ("min.insync.replicas", "2", "1", True),
        ("min.insync.replicas", "1", "2", False),
        ("unclean.leader.election.enable", "false", "true", True),
        ("unclean.leader.election.enable", "true", "false", False),
        ("compression.type", "zstd", "lz4", False),
        ("segment.bytes", "1073741824", "52428800", False),
    ],
)
def test_settings_that_can_remove_data(key: str, live: str, declared: str, is_risk: bool) -> None:  # noqa: FBT001 - parameter of a test
    risks = data_risks(changed(key, live, declared))
    assert bool(risks) is is_risk
    assert all(risk.kind is RiskKind.SETTING and key in risk.text for risk in risks)


def test_the_worst_risks_come_first() -> None:
    def action(
        kind: ActionKind, name: str, partitions: int = 4, live: LiveTopic | None = _LIVE
    ) -> TopicAction:
        return TopicAction(kind=kind, name=name, partitions=partitions, config={}, live=live)

    shrinking = ConfigChange("retention.ms", "2", "1")
    plan = planned(
        action(ActionKind.CREATE, "a", live=None),
        action(ActionKind.EXPAND, "b", 64),
        attrs.evolve(action(ActionKind.EXPAND, "c", 64), changes=(shrinking,)),
        action(ActionKind.RECREATE, "d", live=None),
        action(ActionKind.RETIRE, "e"),
        action(ActionKind.DELETE, "f"),
        action(ActionKind.ADOPT, "g"),
        action(ActionKind.KEEP, "h"),
        action(ActionKind.RELEASE, "i"),
    )
    found = [(risk.kind, risk.topic) for risk in data_risks(plan)]
    assert found == [
        (RiskKind.DELETION, "e"),
        (RiskKind.DELETION, "f"),
        (RiskKind.LOSS, "d"),
        (RiskKind.SETTING, "c"),
        (RiskKind.MOVED_KEYS, "b"),
        (RiskKind.MOVED_KEYS, "c"),
    ]
    assert "4 → 64 partitions: keys move" in data_risks(plan)[-1].text


@pytest.mark.parametrize(("partitions", "is_risk"), [(4, False), (5, True), (8, True)])
def test_one_added_partition_moves_keys(partitions: int, is_risk: bool) -> None:  # noqa: FBT001 - parameter of a test
    action = TopicAction(kind=ActionKind.EXPAND, name="a", partitions=partitions, config={}, live=_LIVE)
    assert [risk.kind for risk in data_risks(planned(action))] == [RiskKind.MOVED_KEYS] * is_risk


def test_a_first_setup_has_no_risks() -> None:
    assert data_risks(PLANS["first_setup"]()) == ()
