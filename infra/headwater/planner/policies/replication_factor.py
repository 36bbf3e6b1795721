"""Limits for the replication factor."""

from collections.abc import Iterator

from headwater.model.policies import Policy, ReplicationFactor, TopicClass
from headwater.model.problems import Problem
from headwater.planner.phrases import counted
from headwater.planner.policies.subject import Subject
from headwater.planner.policies.violation import bounds_text, violation


def replication_factor(rule: ReplicationFactor, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. A factor that is left to the broker is checked in a plan, where it is known."""
    for topic in subject.topics:
        factor = topic.replication_factor
        if topic.topic_class in rule.classes and factor is not None and not rule.bounds.holds(factor):
            is_managed = topic.topic_class is TopicClass.MANAGED
            yield violation(
                policy,
                subject,
                f"{topic.title} has {counted(factor, 'replica')} of each partition.",
                topic=topic,
                expected=f"{bounds_text(rule.bounds)} replicas",
                found=f"{factor}",
                why="With too few replicas, the failure of a broker loses data or stops processing. Each "
                "additional one costs disk space and network traffic.",
                fix=("Set its `replicationFactor`." if is_managed else "Set the config `replication.factor`.")
                + " For an existing topic, also run `kafka-reassign-partitions.sh`.",
            )
