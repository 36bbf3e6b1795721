"""Settings that policies about drift ignore, and the class by which policies select a topic."""

import attrs
import pytest

from headwater.model.nodes import ChangelogKind
from headwater.model.policies import TopicClass
from headwater.model.topology import Sink
from headwater.planner import ActionKind, ConfigChange, TopicAction
from headwater.planner.policies.topic_settings import drift_policies, topic_class, without_ignored
from tests.planner.simulated_cluster import changelog, repartition
from tests.policies.policy_cases import policies

DIFFERING = tuple(ConfigChange(key, "1", "2") for key in ("flush.ms", "flush.messages", "segment.ms"))
ACTION = TopicAction(
    kind=ActionKind.RECONFIGURE,
    name="t",
    partitions=4,
    config={},
    topic=changelog("t", 4),
    changes=DIFFERING[:1],
    drift=DIFFERING,
)


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        ("drift: {ignoreSettings: [flush.ms]}", ["flush.messages", "segment.ms"]),
        ("drift: {ignoreSettings: [flush.*]}", ["segment.ms"]),
        ("drift: {ignoreSettings: [flush.*, segment.ms]}", []),
        ("drift: {ignoreSettings: [flush]}", ["flush.ms", "flush.messages", "segment.ms"]),
        (
            "drift: {ignoreSettings: [flush.*], kinds: [managed]}",
            ["flush.ms", "flush.messages", "segment.ms"],
        ),
        ("drift: {ignoreSettings: [flush.*], applications: x}", ["flush.ms", "flush.messages", "segment.ms"]),
        ("drift: {failOn: error}", ["flush.ms", "flush.messages", "segment.ms"]),
    ],
)
def test_ignored_settings_are_not_shown(policy: str, shown: list[str]) -> None:
    (action,) = without_ignored("orders", [ACTION], policies(policy))
    assert [change.key for change in action.drift] == shown
    assert action.changes == ACTION.changes
    assert attrs.evolve(action, drift=DIFFERING) == ACTION


def test_only_policies_about_drift_tolerate_differences() -> None:
    loaded = policies("drift: {tolerated: 1}\n  - topicPartitions: {max: 3}")
    assert drift_policies(loaded) == loaded[:1]


def test_a_topic_is_selected_by_its_kind() -> None:
    windows = changelog("t", 4, ChangelogKind.WINDOWED)
    found = [topic_class(topic) for topic in (windows, repartition("t", 4), Sink("t", 4), None)]
    assert found == [TopicClass.CHANGELOG, TopicClass.REPARTITION, TopicClass.MANAGED, TopicClass.MANAGED]
