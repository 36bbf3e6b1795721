"""Policies: rules of an organization for all its applications, beyond the rules of Kafka Streams.

Durations are milliseconds. Bounds are inclusive; None = no bound.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import attrs

from headwater.model.problems import Location, Severity


class TopicClass(StrEnum):
    """The classes by which a policy selects topics: kinds of internal topics, and managed sink topics."""

    REPARTITION = "repartition"
    CHANGELOG = "changelog"
    FK_SUBSCRIPTION = "fk-subscription"
    MANAGED = "managed"


EVERY_CLASS = frozenset(TopicClass)


class Named(StrEnum):
    """What the checked name belongs to. Names that Kafka Streams generates are not checked."""

    APPLICATION = "applicationId"
    STORE = "storeName"
    REPARTITION = "repartitionName"
    MANAGED_TOPIC = "managedTopicName"


class Effect(StrEnum):
    """The changes that a policy limits in one run."""

    CREATED_TOPICS = "createdTopics"
    ADDED_PARTITIONS = "addedPartitions"
    RECREATED_TOPICS = "recreatedTopics"
    DELETED_TOPICS = "deletedTopics"
    REMOVING_SETTINGS = "removingSettings"


@attrs.frozen
class Bounds:
    """From `least` to `most`."""

    least: int | None = None
    most: int | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


@attrs.frozen
class PolicyRule:
    """What a policy requires."""


@attrs.frozen
class BoundedRule(PolicyRule):
    """A rule about a number, for topics of some classes."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class Naming(PolicyRule):
    """Names fully match `pattern`, a Java regular expression."""

    of: Named
    pattern: str


@attrs.frozen
class TopicPartitions(BoundedRule):
    """Partitions of each topic."""


@attrs.frozen
class ApplicationPartitions(BoundedRule):
    """Partitions of all topics of an application together."""


@attrs.frozen
class ReplicationFactor(BoundedRule):
    """Replicas of each partition."""


@attrs.frozen
class MinInsyncReplicas(BoundedRule):
    """Replicas that have a record before it counts as written."""


@attrs.frozen
class Retention(BoundedRule):
    """Retention in milliseconds of topics whose cleanup policy deletes; unlimited exceeds every bound."""


@attrs.frozen
class TopicConfig(PolicyRule):
    """Settings that topics must have, with these values (None = any), and those that they must not set."""

    required: Mapping[str, str | None] = attrs.field(factory=dict)
    forbidden: tuple[str, ...] = ()
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class NamedResources(PolicyRule):
    """No internal topic has a generated name."""


@attrs.frozen
class BlastRadius(PolicyRule):
    """The number of changes that one run may make, over all selected applications."""

    limits: Mapping[Effect, int]


@attrs.frozen
class DriftTolerance(PolicyRule):
    """Which differences of `headwater drift` are not reported, or do not count.

    `ignored_settings` are names of topic settings, or beginnings of names and `*`. Findings below the
    severity `least` are reported and do not count. Nor do the others, if there are at most `tolerated` of
    them.
    """

    ignored_settings: tuple[str, ...] = ()
    least: Severity = Severity.INFO
    tolerated: int = 0
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen(kw_only=True)
class Policy:
    """A rule for the applications whose ids fully match `applications` (a Java regular expression).

    `message` is the organization's reason; empty = the default text of the rule. `key` is the name of the
    policy in the policy file.
    """

    rule: PolicyRule
    key: str
    at: Location
    severity: Severity = Severity.ERROR
    message: str = ""
    applications: str | None = None


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether `name` is one of `patterns`, or begins like a pattern that ends with a star."""
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )
