"""The topics of an application have not too many partitions together."""

from collections.abc import Iterator

from infra.model.policies import ApplicationPartitions, Policy
from infra.model.problems import Problem
from infra.planner.policies.bounds import bounds_text
from infra.planner.policies.subject import Subject
from infra.planner.policies.violation import violation
from infra.planner.wording import counted


def application_partitions(
    rule: ApplicationPartitions, policy: Policy, subject: Subject
) -> Iterator[Problem]:
    """Judge only when every count is known."""
    counts = [topic.partitions for topic in subject.topics if topic.topic_class in rule.classes]
    known = [count for count in counts if count is not None]
    if not counts or len(known) < len(counts) or rule.bounds.holds(sum(known)):
        return
    total = sum(known)
    yield violation(
        policy,
        subject,
        f"The topics of {subject.application.id} have {counted(total, 'partition')} together.",
        expected=f"{bounds_text(rule.bounds)} partitions",
        found=f"{total} in {counted(len(counts), 'topic')}",
        why="An application that takes a large part of what the cluster can hold endangers all others.",
        fix="Leave out repartitions and stores that are not needed, or have the limit raised for this "
        "application.",
    )
