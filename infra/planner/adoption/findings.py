"""What a survey comes to."""

from collections.abc import Mapping

import attrs

from infra.model.cluster import LiveTopic
from infra.model.observed import Unknown
from infra.model.survey import GroupFacts


@attrs.frozen(kw_only=True)
class FoundApplication:
    """An application with its internal topics, sorted by name.

    `group` None = gone; `sources` are the topics read with their counts, `vanished` those read once that do
    not exist. `shorter` are ids of other applications that its id begins with, `doubts` sentences about
    topics that may be another's.
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
        """The questions that stay open."""
        asked = {
            Unknown.SUBTOPOLOGIES: True,
            Unknown.SOURCES: not self.sources,
            Unknown.PROTOCOL: self.group is None,
        }
        return tuple(unknown for unknown, is_open in asked.items() if is_open)


@attrs.frozen
class PassedOver:
    """A topic that is named like an internal one and was not taken for one, and why."""

    topic: str
    reason: str


@attrs.frozen
class Recognized:
    """Applications by id, topics left over by name; `stateless` are those that have no internal topics."""

    applications: tuple[FoundApplication, ...]
    passed_over: tuple[PassedOver, ...]
    stateless: tuple[str, ...]
