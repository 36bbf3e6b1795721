"""An application as observed on a cluster: its internal topics are known, its topology is not."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from headwater.model.nodes import TopicKind
from headwater.model.problems import Location


class Unknown(StrEnum):
    """What the cluster does not show about an application; reported until the document answers it."""

    SUBTOPOLOGIES = "subtopologies"
    """Which sub-topology reads, writes or owns a topic, so which count its partition count follows."""
    SOURCES = "sources"
    """Which topics are read: the group has neither members nor offsets."""
    PROTOCOL = "protocol"
    """Classic or streams: the consumer group does not exist."""


@attrs.frozen(kw_only=True)
class ObservedTopic:
    """An existing internal topic; `name` without the application id prefix.

    `config` has all settings of the topic; None = those that Kafka Streams sets for the kind.
    `replication_factor` -1 = the broker's default.
    """

    name: str
    kind: TopicKind
    partitions: int
    config: Mapping[str, str] | None = None
    replication_factor: int = -1
    at: Location | None = None


@attrs.frozen
class ObservedTopology:
    """The internal topics, and the source topics with their partition counts at the time of observation.

    `unknown` maps each open question to its location in the document.
    """

    topics: tuple[ObservedTopic, ...]
    at: Location
    sources: Mapping[str, int] = attrs.field(factory=dict)
    unknown: Mapping[Unknown, Location] = attrs.field(factory=dict)
    locations: Mapping[str, Location] = attrs.field(factory=dict)
    """Source topic → its location in the document."""
