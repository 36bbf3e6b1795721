"""No topic has too many or too few partitions."""

from collections.abc import Iterator

from infra.model.policies import Policy, TopicPartitions
from infra.model.problems import Problem
from infra.planner.policies.bounds import bounds_text
from infra.planner.policies.subject import Subject
from infra.planner.policies.violation import violation
from infra.planner.wording import counted


def topic_partitions(rule: TopicPartitions, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Look at the counts after the run."""
    for topic in subject.topics:
        count = topic.partitions
        if topic.topic_class in rule.classes and count is not None and not rule.bounds.holds(count):
            is_much = rule.bounds.most is not None and count > rule.bounds.most
            yield violation(
                policy,
                subject,
                f"{topic.title} has {counted(count, 'partition')}.",
                topic=topic,
                expected=f"{bounds_text(rule.bounds)} partitions",
                found=f"{count}",
                why=_TOO_MANY if is_much else _TOO_FEW,
                fix="Its count follows the source topics: repartition() with `partitions` sets another one."
                if is_much
                else "Let the source topics, or an explicit count, have more partitions.",
            )


_TOO_MANY = "Each partition costs memory, open files and time to fail over, and none can be taken away again."
_TOO_FEW = "No more tasks can work side by side than there are partitions; adding some later moves keys."
