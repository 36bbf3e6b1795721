"""An application as a cluster shows it: which internal topics it has, not what its topology is made of."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from infra.model.nodes import TopicKind
from infra.model.problems import Location


class Unknown(StrEnum):
    """What a cluster does not tell of an application; each stays a question until somebody answers it."""

    SUBTOPOLOGIES = "subtopologies"
    """Which sub-topology reads, writes or owns a topic, hence whom its partition count follows."""
    SOURCES = "sources"
    """Which topics are read: the group has neither members nor offsets."""
    PROTOCOL = "protocol"
    """Classic or streams: the group is gone."""


@attrs.frozen(kw_only=True)
class ObservedTopic:
    """An internal topic that exists, `name` undecorated. `config` holds every setting of the topic itself.

    None = those that Kafka Streams sets for the kind. `replication_factor` -1 = the broker's default.
    """

    name: str
    kind: TopicKind
    partitions: int
    config: Mapping[str, str] | None = None
    replication_factor: int = -1
    at: Location | None = None


@attrs.frozen
class ObservedTopology:
    """`sources` are topics that the application reads, with the counts that they had when it was observed.

    `unknown` has a place in the document for each open question.
    """

    topics: tuple[ObservedTopic, ...]
    at: Location
    sources: Mapping[str, int] = attrs.field(factory=dict)
    unknown: Mapping[Unknown, Location] = attrs.field(factory=dict)
    locations: Mapping[str, Location] = attrs.field(factory=dict)
    """Source topic → where it is noted."""
