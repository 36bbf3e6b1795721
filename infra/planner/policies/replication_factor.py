"""Every partition has enough replicas, and not too many."""

from collections.abc import Iterator

from infra.model.policies import Policy, ReplicationFactor, TopicClass
from infra.model.problems import Problem
from infra.planner.policies.bounds import bounds_text
from infra.planner.policies.subject import Subject
from infra.planner.policies.violation import violation
from infra.planner.wording import counted


def replication_factor(rule: ReplicationFactor, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """A factor that is left to the broker is judged in a plan, where it is known."""
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
                why="With too few replicas a broken broker loses data or stops the application; each one "
                "more is paid for in disk and network.",
                fix=("Set its `replicationFactor`" if is_managed else "Set the config `replication.factor`")
                + "; that of a topic which exists changes by `kafka-reassign-partitions.sh` only.",
            )
