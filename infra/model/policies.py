"""Policies: what an organization wants of all its applications, beyond what Kafka Streams demands.

Durations are milliseconds. Bounds are inclusive; None = no bound.
"""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from infra.model.problems import Location, Severity


class TopicClass(StrEnum):
    """What a policy may choose topics by: the kinds of internal topics, and managed sink topics."""

    REPARTITION = "repartition"
    CHANGELOG = "changelog"
    FK_SUBSCRIPTION = "fk-subscription"
    MANAGED = "managed"


EVERY_CLASS = frozenset(TopicClass)


class Named(StrEnum):
    """Whose name is judged. Names that Kafka Streams generates are nobody's choice and not judged."""

    APPLICATION = "applicationId"
    STORE = "storeName"
    REPARTITION = "repartitionName"
    MANAGED_TOPIC = "managedTopicName"


class Effect(StrEnum):
    """What one run may do only so often."""

    CREATED_TOPICS = "createdTopics"
    ADDED_PARTITIONS = "addedPartitions"
    RECREATED_TOPICS = "recreatedTopics"
    DELETED_TOPICS = "deletedTopics"


@attrs.frozen
class Bounds:
    """From `least` to `most`."""

    least: int | None = None
    most: int | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


@attrs.frozen
class Naming:
    """Names fully match `pattern`, a Java regular expression."""

    of: Named
    pattern: str


@attrs.frozen
class TopicPartitions:
    """Partitions of each topic."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class ApplicationPartitions:
    """Partitions of all topics of an application together."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class ReplicationFactor:
    """Replicas of each partition."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class MinInsyncReplicas:
    """Replicas that have a record before it counts as written."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class Retention:
    """How long topics whose cleanup policy deletes keep records; without limit is longer than any bound."""

    bounds: Bounds
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class TopicConfig:
    """Settings that topics must have, with these values (None = any), and those that they must not set."""

    required: Mapping[str, str | None] = attrs.field(factory=dict)
    forbidden: tuple[str, ...] = ()
    classes: frozenset[TopicClass] = EVERY_CLASS


@attrs.frozen
class NamedResources:
    """No internal topic has a generated name."""


@attrs.frozen
class BlastRadius:
    """How much one run may do, all chosen applications together."""

    limits: Mapping[Effect, int]


PolicyRule = (
    Naming
    | TopicPartitions
    | ApplicationPartitions
    | ReplicationFactor
    | MinInsyncReplicas
    | Retention
    | TopicConfig
    | NamedResources
    | BlastRadius
)


@attrs.frozen(kw_only=True)
class Policy:
    """A rule for the applications whose ids fully match `applications` (a Java regular expression).

    `message` says why the organization wants it; empty = the rule's own reason. `key` is the policy's word
    for itself in the file that it stands in.
    """

    rule: PolicyRule
    key: str
    at: Location
    severity: Severity = Severity.ERROR
    message: str = ""
    applications: str | None = None
