"""Limits for the sum of the partitions of an application's topics."""

from collections.abc import Iterator

from headwater.model.policies import ApplicationPartitions, Policy
from headwater.model.problems import Problem
from headwater.planner.phrases import counted
from headwater.planner.policies.subject import Subject
from headwater.planner.policies.violation import bounds_text, violation


def application_partitions(
    rule: ApplicationPartitions, policy: Policy, subject: Subject
) -> Iterator[Problem]:
    """Yield a violation. Nothing is checked unless all counts are known."""
    counts = [topic.partitions for topic in subject.topics if topic.topic_class in rule.classes]
    known = [count for count in counts if count is not None]
    if not counts or len(known) < len(counts) or rule.bounds.holds(sum(known)):
        return
    total = sum(known)
    yield violation(
        policy,
        subject,
        f"The topics of {subject.application.id} have {counted(total, 'partition')} in total.",
        expected=f"{bounds_text(rule.bounds)} partitions",
        found=f"{total} in {counted(len(counts), 'topic')}",
        why="An application that uses a large part of the cluster's capacity endangers all others.",
        fix="Remove repartitions and stores that are not needed, or have the limit raised for this "
        "application.",
    )
