"""Limits for `min.insync.replicas`."""

from collections.abc import Iterator

from headwater.model.policies import MinInsyncReplicas, Policy, TopicClass
from headwater.model.problems import Problem
from headwater.planner.phrases import counted, whole
from headwater.planner.policies.subject import Subject
from headwater.planner.policies.violation import bounds_text, on_existing_topic, violation

_KEY = "min.insync.replicas"


def min_insync_replicas(rule: MinInsyncReplicas, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. The topic's own setting counts, else the broker's if a cluster is known."""
    for topic in subject.topics:
        text = topic.effective(_KEY)
        value = whole(text) if text is not None else None
        if topic.topic_class in rule.classes and value is not None and not rule.bounds.holds(value):
            own = _KEY in topic.config
            yield violation(
                policy,
                subject,
                f"{topic.title} acknowledges a record when {counted(value, 'replica')} "
                f"{'has' if value == 1 else 'have'} it.",
                topic=topic,
                expected=f"{_KEY} {bounds_text(rule.bounds)}",
                found=f"{value}{'' if own else ', the default of the brokers'}",
                why="With too few, the loss of one broker loses records. With as many as there are replicas, "
                "the failure of one broker stops all writes.",
                fix=(
                    f"Set `{_KEY}` of the managed topic."
                    if topic.topic_class is TopicClass.MANAGED
                    else f"Set `topic.{_KEY}` in the application's config."
                )
                + on_existing_topic(subject, topic, _KEY, str(rule.bounds.least or rule.bounds.most)),
            )
