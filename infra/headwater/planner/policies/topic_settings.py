"""Policies about topics: configs, retention, replication factor, `min.insync.replicas`."""

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from headwater.compiler.internal_topics import repartition_config
from headwater.compiler.java.config_values import parse_whole
from headwater.model.compiled import InternalTopic
from headwater.model.policies import (
    DriftTolerance,
    MinInsyncReplicas,
    Policy,
    ReplicationFactor,
    Retention,
    TopicClass,
    TopicConfig,
    matches_any,
)
from headwater.model.problems import Problem
from headwater.model.topology import Sink
from headwater.planner.phrases import counted, explain_milliseconds
from headwater.planner.plans import TopicAction
from headwater.planner.policies.subject import (
    PolicyTopic,
    Subject,
    applies_to,
    bounds_text,
    existing_topic_fix,
    policy_violation,
)

_OF_CHANGELOGS = ("cleanup.policy", "message.timestamp.type", "min.compaction.lag.ms", "retention.ms")


def topic_config(rule: TopicConfig, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. A required value may be the topic's own or the broker's, which only a plan knows.

    Settings that Kafka Streams puts on every topic of a kind are not forbidden: no user chose them.
    """
    for topic in subject.topics:
        if topic.topic_class in rule.classes:
            for key, value in sorted(rule.required.items()):
                if not _may_hold(topic, key, value):
                    yield _missing_setting(policy, subject, topic, key, value)
            for key in rule.forbidden:
                if key in topic.config and not _is_set_by_kafka_streams(topic, key):
                    yield _forbidden_setting(policy, subject, topic, key)


def _may_hold(topic: PolicyTopic, key: str, value: str | None) -> bool:
    held = topic.effective_value(key)
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


def _missing_setting(
    policy: Policy, subject: Subject, topic: PolicyTopic, key: str, value: str | None
) -> Problem:
    held = topic.effective_value(key)
    return policy_violation(
        policy,
        subject,
        f"{topic.title} does not have the setting {key}{'' if value is None else f'={value}'}.",
        topic=topic,
        expected=f"{key} {value if value is not None else 'with any value'}",
        found=f"{key} {held if held is not None else 'not set'}",
        why="The policy requires it for every topic of this kind.",
        fix=f"Set {_setting_of(subject, topic, key)}."
        + existing_topic_fix(subject, topic, key, "VALUE" if value is None else value),
    )


def _forbidden_setting(policy: Policy, subject: Subject, topic: PolicyTopic, key: str) -> Problem:
    return policy_violation(
        policy,
        subject,
        f"{topic.title} sets {key}, which the policy forbids.",
        topic=topic,
        expected=f"{key} not set",
        found=f"{key} {topic.config[key]}",
        why="The operators of the brokers decide it.",
        fix=f"Remove {_setting_of(subject, topic, key)}"
        f"{_OR_OVERRIDE if topic.topic_class is TopicClass.CHANGELOG and not subject.is_observed else ''}"
        f", and from the topic: `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
        f"{topic.name} --delete-config {key}`.",
    )


_OR_OVERRIDE = " or the store's override"


def _setting_of(subject: Subject, topic: PolicyTopic, key: str) -> str:
    """Return where the document sets a setting of the topic."""
    if topic.topic_class is TopicClass.MANAGED:
        return f"`{key}` of the managed topic"
    if subject.is_observed:
        return f"`{key}` in the `config` (with all of its settings) of {topic.name} below `observed.topics`"
    return f"`topic.{key}` in the application's config"


def check_retention(rule: Retention, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations of topics whose cleanup policy deletes. A plan also checks the broker's defaults."""
    for topic in subject.topics:
        kept = _kept_ms(topic)
        if topic.topic_class in rule.classes and kept is not None and not rule.bounds.holds(kept):
            is_too_long = rule.bounds.most is not None and kept > rule.bounds.most
            yield policy_violation(
                policy,
                subject,
                f"{topic.title} keeps its records too {'long' if is_too_long else 'short'}.",
                topic=topic,
                expected=f"retention.ms {bounds_text(rule.bounds, lambda ms: explain_milliseconds(str(ms)))}",
                found=f"retention.ms {explain_milliseconds(topic.effective_value('retention.ms') or '')}",
                why="Records that are deleted too early cannot be processed again. Records that are kept too "
                "long cost disk space, and data that must be deleted stays.",
                fix=_retention_fix(subject, topic)
                + (
                    existing_topic_fix(subject, topic, "retention.ms", "MILLISECONDS")
                    if topic.topic_class is TopicClass.MANAGED
                    else ""
                ),
            )


def _retention_fix(subject: Subject, topic: PolicyTopic) -> str:
    setting = _setting_of(subject, topic, "retention.ms")
    match topic.topic_class:
        case TopicClass.MANAGED:
            return "Set `retention.ms` of the topic."
        case TopicClass.CHANGELOG if subject.is_observed:
            return f"Set {setting}, as the application does in its code."
        case TopicClass.CHANGELOG:
            return (
                "Change the window, its grace or the store's retention, or "
                "`windowstore.changelog.additional.retention.ms`."
            )
        case _:
            return (
                "Kafka Streams itself deletes the records that it has read, so -1 is correct. Remove this "
                f"kind from the policy's `kinds`, or set {setting} and accept that unread records may be "
                "deleted."
            )


def _kept_ms(topic: PolicyTopic) -> float | None:
    """Return milliseconds, infinity for no limit; None if age deletes nothing, or only the broker knows."""
    if "delete" not in (topic.effective_value("cleanup.policy") or "delete").split(","):
        return None
    number = parse_whole(topic.effective_value("retention.ms") or "")
    if number is None:
        return None
    return math.inf if number < 0 else number


def replication_factor(rule: ReplicationFactor, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. A factor that is left to the broker is checked in a plan, where it is known."""
    for topic in subject.topics:
        factor = topic.replication_factor
        if topic.topic_class in rule.classes and factor is not None and not rule.bounds.holds(factor):
            is_managed = topic.topic_class is TopicClass.MANAGED
            yield policy_violation(
                policy,
                subject,
                f"{topic.title} has {counted(factor, 'replica')} of each partition.",
                topic=topic,
                expected=f"{bounds_text(rule.bounds)} replicas",
                found=f"{factor}",
                why="With too few replicas, the failure of a broker loses data or stops processing. Each "
                "additional one costs disk space and network traffic.",
                fix=(
                    "Set its `replicationFactor`."
                    if is_managed or subject.is_observed
                    else "Set the config `replication.factor`."
                )
                + " For an existing topic, also run `kafka-reassign-partitions.sh`.",
            )


_KEY = "min.insync.replicas"


def min_insync_replicas(rule: MinInsyncReplicas, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. The topic's own setting counts, else the broker's if a cluster is known."""
    for topic in subject.topics:
        text = topic.effective_value(_KEY)
        value = parse_whole(text) if text is not None else None
        if topic.topic_class in rule.classes and value is not None and not rule.bounds.holds(value):
            own = _KEY in topic.config
            yield policy_violation(
                policy,
                subject,
                f"{topic.title} acknowledges a record when {counted(value, 'replica')} "
                f"{'has' if value == 1 else 'have'} it.",
                topic=topic,
                expected=f"{_KEY} {bounds_text(rule.bounds)}",
                found=f"{value}{'' if own else ', the default of the brokers'}",
                why="With too few, the loss of one broker loses records. With as many as there are replicas, "
                "the failure of one broker stops all writes.",
                fix=f"Set {_setting_of(subject, topic, _KEY)}."
                + existing_topic_fix(subject, topic, _KEY, str(rule.bounds.least or rule.bounds.most)),
            )


def drift_policies(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the policies about drift."""
    return tuple(policy for policy in policies if isinstance(policy.rule, DriftTolerance))


def without_ignored(
    application: str, actions: Iterable[TopicAction], policies: Sequence[Policy]
) -> tuple[TopicAction, ...]:
    """Return the actions without differences of ignored settings. What the run changes stays."""
    rules = [policy.rule for policy in drift_policies(policies) if applies_to(policy, application)]
    ignoring = [rule for rule in rules if isinstance(rule, DriftTolerance) and rule.ignored_settings]
    return tuple(_without_tolerated(action, ignoring) for action in actions) if ignoring else tuple(actions)


def _without_tolerated(action: TopicAction, rules: Iterable[DriftTolerance]) -> TopicAction:
    patterns = [
        name for rule in rules if topic_class(action.topic) in rule.classes for name in rule.ignored_settings
    ]
    left = tuple(change for change in action.drift if not matches_any(change.key, patterns))
    return attrs.evolve(action, drift=left)


def topic_class(topic: InternalTopic | Sink | None) -> TopicClass:
    """Return the class by which policies select a topic."""
    return TopicClass(topic.kind.value) if isinstance(topic, InternalTopic) else TopicClass.MANAGED
