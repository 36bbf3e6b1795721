"""Topics have the settings that everybody's must have, and none that nobody's may have."""

from collections.abc import Iterator

from infra.compiler.topic_configs import repartition_config
from infra.model.policies import Policy, TopicClass, TopicConfig
from infra.model.problems import Problem
from infra.planner.policies.subject import JudgedTopic, Subject
from infra.planner.policies.violation import violation

_OF_CHANGELOGS = ("cleanup.policy", "message.timestamp.type", "min.compaction.lag.ms", "retention.ms")


def topic_config(rule: TopicConfig, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """A required value holds by the topic's own setting or the broker's, which only a plan knows.

    What Kafka Streams sets on every topic of a kind is nobody's choice, so it is not forbidden.
    """
    for topic in subject.topics:
        if topic.topic_class in rule.classes:
            for key, value in sorted(rule.required.items()):
                if not _may_hold(topic, key, value):
                    yield _lacking(policy, subject, topic, key, value)
            for key in rule.forbidden:
                if key in topic.config and not _is_given(topic, key):
                    yield _forbidden(policy, subject, topic, key)


def _may_hold(topic: JudgedTopic, key: str, value: str | None) -> bool:
    held = topic.effective(key)
    if held is None:
        return topic.defaults is None
    return value is None or held == value


def _is_given(topic: JudgedTopic, key: str) -> bool:
    match topic.topic_class:
        case TopicClass.MANAGED:
            return False
        case TopicClass.CHANGELOG:
            return key in _OF_CHANGELOGS
        case _:
            return topic.config[key] == repartition_config({}).get(key)


def _lacking(policy: Policy, subject: Subject, topic: JudgedTopic, key: str, value: str | None) -> Problem:
    held = topic.effective(key)
    return violation(
        policy,
        subject,
        f"{topic.title} lacks the setting {key}{'' if value is None else f'={value}'}.",
        topic=topic,
        expected=f"{key} {value if value is not None else 'with any value'}",
        found=f"{key} {held if held is not None else 'not set'}",
        why="Every topic must have it here.",
        fix=f"Set {_place(topic, key)}.",
    )


def _forbidden(policy: Policy, subject: Subject, topic: JudgedTopic, key: str) -> Problem:
    return violation(
        policy,
        subject,
        f"{topic.title} sets {key}, which no topic may set.",
        topic=topic,
        expected=f"{key} not set",
        found=f"{key} {topic.config[key]}",
        why="It is for those who run the brokers to decide.",
        fix=f"Remove {_place(topic, key)}"
        + (" or the store's override" if topic.topic_class is TopicClass.CHANGELOG else "")
        + f", and from the topic: `kafka-configs.sh --alter --topic {topic.name} --delete-config {key}`.",
    )


def _place(topic: JudgedTopic, key: str) -> str:
    if topic.topic_class is TopicClass.MANAGED:
        return f"`{key}` of the managed topic"
    return f"`topic.{key}` in the application's config"
