"""Enough replicas have a record before it counts as written."""

from collections.abc import Iterator

from infra.model.policies import MinInsyncReplicas, Policy, TopicClass
from infra.model.problems import Problem
from infra.planner.policies.bounds import bounds_text
from infra.planner.policies.subject import Subject
from infra.planner.policies.violation import violation
from infra.planner.wording import whole

_KEY = "min.insync.replicas"


def min_insync_replicas(rule: MinInsyncReplicas, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Judge what holds: the topic's own setting, else the broker's if a cluster is known."""
    for topic in subject.topics:
        text = topic.effective(_KEY)
        value = whole(text) if text is not None else None
        if topic.topic_class in rule.classes and value is not None and not rule.bounds.holds(value):
            own = _KEY in topic.config
            yield violation(
                policy,
                subject,
                f"{topic.title} counts a record as written when {value} of its replicas have it.",
                topic=topic,
                expected=f"{_KEY} {bounds_text(rule.bounds)}",
                found=f"{value}{'' if own else ', the default of the brokers'}",
                why="With too few, the loss of one broker loses records; with as many as there are replicas, "
                "one broken broker stops all writing.",
                fix=f"Set `{_KEY}` of the managed topic."
                if topic.topic_class is TopicClass.MANAGED
                else f"Set `topic.{_KEY}` in the application's config.",
            )
