"""The parts of topics and of ACLs in a plan."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.acls import Acl
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import InternalTopic
from headwater.model.topology import Sink


class ActionKind(Enum):
    """What happens to a topic. If several apply, the first one names the action.

    RECREATE and CREATE create the topic, ADOPT puts an existing one under management, EXPAND adds partitions,
    RECONFIGURE changes settings, KEEP changes nothing. RETIRE prepares the deletion of an internal topic: it
    stays, without protection. DELETE deletes it in the run after that. RELEASE ends its management; the topic
    stays.
    """

    RECREATE = "re-create"
    CREATE = "create"
    ADOPT = "adopt"
    EXPAND = "expand"
    RECONFIGURE = "reconfigure"
    KEEP = "keep"
    RETIRE = "retire"
    DELETE = "delete"
    RELEASE = "release"


@attrs.frozen
class ConfigChange:
    """A topic setting that differs: its `live` and its `declared` value; None = not set on the topic."""

    key: str
    live: str | None
    declared: str | None


@attrs.frozen(kw_only=True)
class TopicAction:
    """One topic's part of a plan, with everything that a topic resource needs.

    `partitions` and `config` are the values after the run. `config` is complete, with settings that other
    clients made, because the provider resets settings that it does not get. `topic` is None for a recorded
    topic that the topology no longer has. `wave` orders expansions: wave 0 first (downstream), then 1 and so
    on.
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
    """Settings that differ and are not changed."""
    note: str = ""
    """What an operator must know, such as lost data."""

    @property
    def title(self) -> str:
        """Kind and name of the topic, to begin a sentence with."""
        return f"{'Internal' if isinstance(self.topic, InternalTopic) else 'Sink'} topic {self.name}"

    @property
    def added_partitions(self) -> int:
        """Return how many partitions this run adds to an existing topic."""
        return self.partitions - self.live.partitions if self.live is not None else 0

    @property
    def is_change(self) -> bool:
        """Whether the cluster or the stack differs afterwards."""
        return self.kind not in (ActionKind.KEEP, ActionKind.RETIRE)


class AclActionKind(Enum):
    """What happens to an ACL.

    GRANT creates it. RESTORE creates it again: the stack has it, the cluster lost it. ADOPT puts an existing
    ACL under the stack's management. KEEP changes nothing. REVOKE deletes it. RELEASE ends its management and
    leaves it on the cluster.
    """

    GRANT = "grant"
    RESTORE = "restore"
    ADOPT = "adopt"
    KEEP = "keep"
    REVOKE = "revoke"
    RELEASE = "release"


@attrs.frozen
class AclAction:
    """One ACL's part of a plan. `reason` says what needs it; empty if nothing does."""

    kind: AclActionKind
    acl: Acl
    reason: str = ""

    @property
    def is_change(self) -> bool:
        """Whether the cluster or the stack differs afterwards."""
        return self.kind is not AclActionKind.KEEP
