"""The result of recognizing applications."""

from collections.abc import Mapping

import attrs

from infra.model.cluster import LiveTopic
from infra.model.observed import Unknown
from infra.model.survey import GroupFacts


@attrs.frozen(kw_only=True)
class FoundApplication:
    """An application with its internal topics, sorted by name.

    `group` None = it no longer exists. `sources` are the topics that it reads, with their partition counts,
    `vanished` those that no longer exist. `shorter` are ids of other applications that its id begins with,
    `doubts` are sentences about topics that may belong to another application.
    """

    id: str
    group: GroupFacts | None
    topics: tuple[LiveTopic, ...]
    sources: Mapping[str, int]
    vanished: tuple[str, ...] = ()
    shorter: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Return the open questions."""
        asked = {
            Unknown.SUBTOPOLOGIES: True,
            Unknown.SOURCES: not self.sources,
            Unknown.PROTOCOL: self.group is None,
        }
        return tuple(unknown for unknown, is_open in asked.items() if is_open)


@attrs.frozen
class PassedOver:
    """A topic that is named like an internal one and was skipped, and why."""

    topic: str
    reason: str


@attrs.frozen
class Recognized:
    """Applications sorted by id, skipped topics by name; `stateless` are ids without internal topics."""

    applications: tuple[FoundApplication, ...]
    passed_over: tuple[PassedOver, ...]
    stateless: tuple[str, ...]
