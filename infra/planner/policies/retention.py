"""Topics keep records neither too short nor too long."""

import math
from collections.abc import Iterator

from infra.model.policies import Bounds, Policy, Retention, TopicClass
from infra.model.problems import Problem
from infra.planner.policies.bounds import bounds_text
from infra.planner.policies.subject import JudgedTopic, Subject
from infra.planner.policies.violation import violation
from infra.planner.wording import duration, whole


def retention(rule: Retention, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Judge topics whose cleanup policy deletes; a value that only the broker knows counts in a plan."""
    for topic in subject.topics:
        kept = _kept(topic)
        if topic.topic_class in rule.classes and kept is not None and not rule.bounds.holds(kept):
            yield violation(
                policy,
                subject,
                f"{topic.title} keeps its records {_how_long(rule.bounds, kept)}.",
                topic=topic,
                expected=f"retention.ms {bounds_text(rule.bounds, lambda ms: duration(str(ms)))}",
                found=f"retention.ms {duration(topic.effective('retention.ms') or '')}",
                why="What is kept too short is gone when somebody must process it again; what is kept too "
                "long costs disk, and data that had to be deleted stays.",
                fix=_FIXES[topic.topic_class],
            )


def _kept(topic: JudgedTopic) -> float | None:
    """Milliseconds, infinity for ever; None when nothing is deleted by age, or only the broker knows."""
    if "delete" not in (topic.effective("cleanup.policy") or "delete").split(","):
        return None
    number = whole(topic.effective("retention.ms") or "")
    if number is None:
        return None
    return math.inf if number < 0 else number


def _how_long(bounds: Bounds, kept: float) -> str:
    return "too long" if bounds.most is not None and kept > bounds.most else "too short"


_PURGED = (
    "Kafka Streams deletes what it has read itself, so -1 is meant: leave this kind out of the policy's "
    "`kinds`, or set `topic.retention.ms` and accept that unread records may go."
)
_FIXES = {
    TopicClass.REPARTITION: _PURGED,
    TopicClass.FK_SUBSCRIPTION: _PURGED,
    TopicClass.CHANGELOG: "Change the window, its grace or the store's retention, or "
    "`windowstore.changelog.additional.retention.ms`.",
    TopicClass.MANAGED: "Set `retention.ms` of the topic.",
}
