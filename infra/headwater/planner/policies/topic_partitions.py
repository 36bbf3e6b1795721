"""Limits for the partition count of each topic."""

from collections.abc import Iterator

from headwater.model.policies import Policy, TopicPartitions
from headwater.model.problems import Problem
from headwater.planner.phrases import counted
from headwater.planner.policies.subject import Subject
from headwater.planner.policies.violation import bounds_text, violation


def topic_partitions(rule: TopicPartitions, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations of the counts after the run."""
    for topic in subject.topics:
        count = topic.partitions
        if topic.topic_class in rule.classes and count is not None and not rule.bounds.holds(count):
            is_too_many = rule.bounds.most is not None and count > rule.bounds.most
            yield violation(
                policy,
                subject,
                f"{topic.title} has {counted(count, 'partition')}.",
                topic=topic,
                expected=f"{bounds_text(rule.bounds)} partitions",
                found=f"{count}",
                why=_TOO_MANY if is_too_many else _TOO_FEW,
                fix=_FEWER if is_too_many else _MORE,
            )


_FEWER = (
    "Its count follows the source topics. Before the first setup, call repartition() with `partitions` in "
    "front "
    "of the operator. Later, have the limit raised for this application."
)
_MORE = (
    "Before the first setup, add partitions to the source topics, or call repartition() with a larger "
    "explicit "
    "count in front of the operator. Later, an application with state cannot expand its topics without "
    "moving "
    "keys away from the state (UnsafeExpansion): have the limit lowered for it."
)
_TOO_MANY = "Each partition costs memory, open files and failover time, and Kafka cannot remove partitions."
_TOO_FEW = "The number of partitions limits the number of parallel tasks. Adding partitions later moves keys."
