"""The values that describe an upgrade: changes of applications, and what to do first."""

from collections.abc import Iterator
from enum import StrEnum

import attrs

from headwater.model.cluster import LiveGroup
from headwater.model.problems import Location, Problem, Severity
from headwater.model.versions import KafkaStreamsVersion


class ChangeKind(StrEnum):
    """All kinds of changes, in the order of reports. `docs/upgrade.md` explains each."""

    REFUSED = "refused"
    RENAMED_TOPIC = "renamed-topic"
    DROPPED_TOPIC = "dropped-topic"
    ADDED_TOPIC = "added-topic"
    PARTITIONS = "partitions"
    CONFIG = "config"
    COPARTITIONING = "co-partitioning"
    SUBTOPOLOGIES = "sub-topologies"
    NODES = "nodes"
    ACCEPTED = "accepted"


class State(StrEnum):
    """What happens to the state of an application."""

    NONE = "none"
    """It has no state in changelog topics."""
    KEPT = "kept"
    REBUILT = "rebuilt"
    """A source topic takes the place of the changelog: the store is restored from it."""
    LOST = "lost"


NO_DOWNGRADES = "Kafka Streams does not support downgrades"
"""Why instances must not be restarted one after another with an earlier release."""


@attrs.frozen(kw_only=True)
class Change:
    """One difference between two versions.

    `what` is one sentence, `before` and `after` are short phrases. `why` names the consequences, `first` what
    to do before the upgrade. With an ERROR data is lost or the application does not start; a WARNING needs an
    action; INFO needs none.
    """

    kind: ChangeKind
    severity: Severity
    topic: str | None = None
    what: str
    before: str
    after: str
    why: str
    first: str
    state: State | None = None
    """What happens to the state of the topic's store; None if the topic is no changelog."""
    location: Location | None = None


@attrs.frozen(kw_only=True)
class DataNote:
    """What happens to data: `subject` is a phrase, `what` a sentence, and `first` says what to do."""

    subject: str
    source: str
    """The KIP."""
    since: str
    """The first version with the change."""
    what: str
    first: str

    @property
    def text(self) -> str:
        """Return what happens to data, and what to do."""
        do = self.first[0].lower() + self.first[1:]
        return f"{self.subject} ({self.source}, since {self.since}). {self.what} Do: {do}"


@attrs.frozen(kw_only=True)
class ApplicationUpgrade:
    """The upgrade of one application; `group` is its group on the cluster, None if it was not read."""

    id: str
    before: KafkaStreamsVersion
    after: KafkaStreamsVersion
    changes: tuple[Change, ...]
    state: State
    obstacle: str
    """Why instances of both versions must not run together; empty = a rolling restart is safe."""
    notes: tuple[str, ...] = ()
    group: LiveGroup | None = None
    location: Location | None = None
    data: tuple[DataNote, ...] = ()
    is_known: bool = True
    """Whether the topology that the later version builds is known: a text may not show it."""

    @property
    def is_rolling(self) -> bool:
        """Return whether instances can be restarted one after another."""
        return not self.obstacle


@attrs.frozen(kw_only=True)
class Upgrade:
    """The upgrade of applications to the version `to`.

    `problems` are the reasons why applications were not compared. `assumed` are source topics whose partition
    count is not known. `cluster_id` is None without a cluster.
    """

    to: KafkaStreamsVersion
    applications: tuple[ApplicationUpgrade, ...]
    problems: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()
    cluster_id: str | None = None

    @property
    def changes(self) -> Iterator[Change]:
        """Return all changes, application by application."""
        return (change for application in self.applications for change in application.changes)
