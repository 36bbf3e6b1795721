"""Expansions by agents, as their journal stores them (KIP-878)."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

AGENT_PREFIX = "headwater-agent-"
"""The prefix of the topics and consumer groups of agents; the rest is the name of their group."""

TopicCounts = Mapping[str, int]
"""Topic name → partition count; a topic that does not exist is absent."""


class Stage(StrEnum):
    """The stage of an expansion, as the journal stores it."""

    STARTED = "started"
    """Written before the first topic is changed."""
    EXPANDED = "expanded"
    """All topics have their partitions; the callback is due."""
    NOTIFIED = "notified"
    """The callback was called: the expansion has ended."""
    GIVEN_UP = "given-up"
    CANCELLED = "cancelled"
    """Autoscaling was disabled, or the document was removed."""

    @property
    def is_final(self) -> bool:
        return self in (Stage.NOTIFIED, Stage.GIVEN_UP, Stage.CANCELLED)


@attrs.frozen(kw_only=True)
class ExpansionEntry:
    """One entry of the journal: which agent expanded which topics, when and why.

    An expansion is identified by (`application`, `number`); numbers increase. `before` and `after` are the
    counts of its internal and managed sink topics, `sources_before` and `sources_after` the counts of its
    source topics. `done` are the topics that this agent expanded; another client expanded the others.
    `reason` is one sentence: why the expansion began or ended.
    """

    application: str
    number: int
    stage: Stage
    wall_ms: int
    client_id: str
    before: TopicCounts
    after: TopicCounts
    sources_before: TopicCounts = attrs.field(factory=dict)
    sources_after: TopicCounts = attrs.field(factory=dict)
    done: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen
class AgentExpansion:
    """An agent has expanded a topic to `partitions`. `at` is a time in UTC, for people."""

    topic: str
    partitions: int
    client_id: str
    host: str
    at: str


@attrs.frozen
class AgentExpansions:
    """What the journals of the agents of a cluster contain.

    `read` and `unread` are the journals that the user may describe. Others may exist.
    """

    found: tuple[AgentExpansion, ...] = ()
    """In the order of the journals: a later one of the same topic has priority."""
    unread: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
