"""What is to be done with one topic."""

from collections.abc import Mapping
from enum import Enum

import attrs

from infra.model.cluster import LiveTopic
from infra.model.compiled import InternalTopic
from infra.model.topology import Sink


class ActionKind(Enum):
    """What happens to a topic. Of several things that happen the first that applies names the action.

    RECREATE and CREATE make the topic, ADOPT takes over one that exists, EXPAND adds partitions, RECTIFY
    changes settings, KEEP changes nothing. RETIRE keeps it one last time, unprotected; DELETE is the step
    after. RELEASE lets go: it stays.
    """

    RECREATE = "recreate"
    CREATE = "create"
    ADOPT = "adopt"
    EXPAND = "expand"
    RECTIFY = "rectify"
    KEEP = "keep"
    RETIRE = "retire"
    DELETE = "delete"
    RELEASE = "release"


@attrs.frozen
class ConfigChange:
    """A topic setting that differs: `live` as it is, `wanted` as declared; None = not set on the topic."""

    key: str
    live: str | None
    wanted: str | None


@attrs.frozen(kw_only=True)
class TopicAction:
    """One topic's part of a plan. All that a topic resource needs is here.

    `partitions` and `config` are what the topic has after the run: `config` is complete, settings made by
    others included, because the provider resets those it is not told of. `topic` is None for a recorded topic
    that the topology no longer has. `wave` orders additions of partitions: wave 0 first (downstream), then 1
    and so on.
    """

    kind: ActionKind
    name: str
    partitions: int
    config: Mapping[str, str]
    topic: InternalTopic | Sink | None = None
    live: LiveTopic | None = None
    replication_factor: int = -1
    wave: int = 0
    changes: tuple[ConfigChange, ...] = ()
    """Settings that this run changes."""
    drift: tuple[ConfigChange, ...] = ()
    """Settings that differ and stay as they are."""
    note: str = ""
    """Something the operator must know, such as data that is gone."""

    @property
    def title(self) -> str:
        """Kind and name of the topic, to begin a sentence with."""
        return f"{'Internal' if isinstance(self.topic, InternalTopic) else 'Sink'} topic {self.name}"

    @property
    def added_partitions(self) -> int:
        """Partitions that this run adds to a topic that exists."""
        return self.partitions - self.live.partitions if self.live is not None else 0

    @property
    def is_change(self) -> bool:
        """Whether this does anything at all."""
        return self.kind not in (ActionKind.KEEP, ActionKind.RETIRE)
