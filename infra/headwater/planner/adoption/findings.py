"""The result of recognizing applications."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.cluster import GroupFacts, LiveTopic
from headwater.model.streams_groups import StreamsGroup
from headwater.model.topology import Unknown


@attrs.frozen(kw_only=True)
class FoundApplication:
    """An application with its internal topics, sorted by name.

    `group` None = it no longer exists. `sources` are the topics that it reads, with their partition counts,
    `missing_sources` those that no longer exist. `prefix_ids` are ids of other applications that its id
    begins with, `ambiguities` are sentences about topics that may belong to another application.
    """

    id: str
    group: GroupFacts | None
    topics: tuple[LiveTopic, ...]
    sources: Mapping[str, int]
    missing_sources: tuple[str, ...] = ()
    streams_group: StreamsGroup | None = None
    """The group with its topology, if it has the streams protocol and could be described."""
    prefix_ids: tuple[str, ...] = ()
    ambiguities: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Return the open questions."""
        questions = {
            Unknown.SUBTOPOLOGIES: True,
            Unknown.SOURCES: not self.sources,
            Unknown.PROTOCOL: self.group is None,
        }
        return tuple(unknown for unknown, is_open in questions.items() if is_open)


class SkipReason(Enum):
    """Why a topic that is named like an internal topic was skipped."""

    NO_GROUP = "no group"
    """No group has the id of its application."""
    OTHER_GROUP = "other group"
    """The group of its application does not belong to Kafka Streams, or belongs to ksqlDB."""
    OTHER_SETTINGS = "other settings"
    """The application exists, but the topic does not have the settings that Kafka Streams sets."""


@attrs.frozen
class SkippedTopic:
    """A topic that is named like an internal topic and was skipped. `text` explains the reason."""

    topic: str
    reason: SkipReason
    text: str


@attrs.frozen
class Recognized:
    """Applications sorted by id, skipped topics by name. `stateless` are ids without internal topics."""

    applications: tuple[FoundApplication, ...]
    skipped: tuple[SkippedTopic, ...]
    stateless: tuple[str, ...]
