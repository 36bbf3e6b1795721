"""Limits for how long topics keep records."""

import math
from collections.abc import Iterator

from headwater.model.policies import Bounds, Policy, Retention, TopicClass
from headwater.model.problems import Problem
from headwater.planner.phrases import duration, whole
from headwater.planner.policies.subject import PolicyTopic, Subject
from headwater.planner.policies.violation import bounds_text, on_existing_topic, violation


def retention(rule: Retention, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations of topics whose cleanup policy deletes. A plan also checks the broker's defaults."""
    for topic in subject.topics:
        kept = _kept(topic)
        if topic.topic_class in rule.classes and kept is not None and not rule.bounds.holds(kept):
            yield violation(
                policy,
                subject,
                f"{topic.title} keeps its records {_too_long_or_short(rule.bounds, kept)}.",
                topic=topic,
                expected=f"retention.ms {bounds_text(rule.bounds, lambda ms: duration(str(ms)))}",
                found=f"retention.ms {duration(topic.effective('retention.ms') or '')}",
                why="Records that are deleted too early cannot be processed again. Records that are kept too "
                "long cost disk space, and data that must be deleted stays.",
                fix=_FIXES[topic.topic_class]
                + (
                    on_existing_topic(subject, topic, "retention.ms", "MILLISECONDS")
                    if topic.topic_class is TopicClass.MANAGED
                    else ""
                ),
            )


def _kept(topic: PolicyTopic) -> float | None:
    """Return milliseconds, infinity for no limit; None if age deletes nothing, or only the broker knows."""
    if "delete" not in (topic.effective("cleanup.policy") or "delete").split(","):
        return None
    number = whole(topic.effective("retention.ms") or "")
    if number is None:
        return None
    return math.inf if number < 0 else number


def _too_long_or_short(bounds: Bounds, kept: float) -> str:
    return "too long" if bounds.most is not None and kept > bounds.most else "too short"


_PURGED = (
    "Kafka Streams itself deletes the records that it has read, so -1 is correct. Remove this kind from the "
    "policy's `kinds`, or set `topic.retention.ms` and accept that unread records may be deleted."
)
_FIXES = {
    TopicClass.REPARTITION: _PURGED,
    TopicClass.FK_SUBSCRIPTION: _PURGED,
    TopicClass.CHANGELOG: "Change the window, its grace or the store's retention, or "
    "`windowstore.changelog.additional.retention.ms`.",
    TopicClass.MANAGED: "Set `retention.ms` of the topic.",
}
