"""Settings that topics must have, and settings that they must not have."""

from collections.abc import Iterator

from headwater.compiler.topic_configs import repartition_config
from headwater.model.policies import Policy, TopicClass, TopicConfig
from headwater.model.problems import Problem
from headwater.planner.policies.subject import PolicyTopic, Subject
from headwater.planner.policies.violation import on_existing_topic, violation

_OF_CHANGELOGS = ("cleanup.policy", "message.timestamp.type", "min.compaction.lag.ms", "retention.ms")


def topic_config(rule: TopicConfig, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. A required value may be the topic's own or the broker's, which only a plan knows.

    Settings that Kafka Streams puts on every topic of a kind are not forbidden: no user chose them.
    """
    for topic in subject.topics:
        if topic.topic_class in rule.classes:
            for key, value in sorted(rule.required.items()):
                if not _may_hold(topic, key, value):
                    yield _missing(policy, subject, topic, key, value)
            for key in rule.forbidden:
                if key in topic.config and not _is_set_by_kafka_streams(topic, key):
                    yield _forbidden(policy, subject, topic, key)


def _may_hold(topic: PolicyTopic, key: str, value: str | None) -> bool:
    held = topic.effective(key)
    if held is None:
        return topic.defaults is None
    return value is None or held == value


def _is_set_by_kafka_streams(topic: PolicyTopic, key: str) -> bool:
    match topic.topic_class:
        case TopicClass.MANAGED:
            return False
        case TopicClass.CHANGELOG:
            return key in _OF_CHANGELOGS
        case _:
            return topic.config[key] == repartition_config({}).get(key)


def _missing(policy: Policy, subject: Subject, topic: PolicyTopic, key: str, value: str | None) -> Problem:
    held = topic.effective(key)
    return violation(
        policy,
        subject,
        f"{topic.title} does not have the setting {key}{'' if value is None else f'={value}'}.",
        topic=topic,
        expected=f"{key} {value if value is not None else 'with any value'}",
        found=f"{key} {held if held is not None else 'not set'}",
        why="The policy requires it for every topic of this kind.",
        fix=f"Set {_setting(topic, key)}."
        + on_existing_topic(subject, topic, key, "VALUE" if value is None else value),
    )


def _forbidden(policy: Policy, subject: Subject, topic: PolicyTopic, key: str) -> Problem:
    return violation(
        policy,
        subject,
        f"{topic.title} sets {key}, which the policy forbids.",
        topic=topic,
        expected=f"{key} not set",
        found=f"{key} {topic.config[key]}",
        why="The operators of the brokers decide it.",
        fix=f"Remove {_setting(topic, key)}"
        + (" or the store's override" if topic.topic_class is TopicClass.CHANGELOG else "")
        + f", and from the topic: `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
        f"{topic.name} --delete-config {key}`.",
    )


def _setting(topic: PolicyTopic, key: str) -> str:
    if topic.topic_class is TopicClass.MANAGED:
        return f"`{key}` of the managed topic"
    return f"`topic.{key}` in the application's config"
