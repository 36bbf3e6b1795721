"""The plan and its actions: the value that Pulumi applies and that previews, texts and reports show."""

from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

from headwater.model.acls import Acl
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.policies import Policy
from headwater.model.problems import Problem, errors
from headwater.model.records import SetupRecord, StackIdentity
from headwater.model.topology import Sink
from headwater.planner.document_settings import SettingChange
from headwater.planner.ownership import Ownership


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


@attrs.frozen
class PlanPolicy:
    """What holds for every application of a stack."""

    cluster_id: str | None = None
    """The cluster that this stack belongs to; another one is an error."""
    policies: tuple[Policy, ...] = ()
    are_documents_complete: bool = True
    """False if a document could not be read: then an application may look removed and is not."""
    stack: StackIdentity | None = None
    """Who plans; None = no stack."""
    configures_records: bool = True
    """Whether the topic of the ownership records gets all its settings; otherwise only `cleanup.policy`."""


@attrs.frozen
class ApplicationPlan:
    """One application's part: `actions` sorted by wave, then name.

    `compiled` is None if the document was removed. `recorded` is the setup record before the run, `record`
    the one after it (without the ids of new topics); None = no record. `notes` are for the operator.
    """

    application_id: str
    compiled: CompiledApplication | None
    actions: tuple[TopicAction, ...]
    record: SetupRecord | None
    recorded: SetupRecord | None = None
    notes: tuple[str, ...] = ()
    acls: tuple[AclAction, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    """Settings of the document that differ from the recorded ones."""

    @property
    def has_changes(self) -> bool:
        """Whether the run changes the cluster or the record."""
        return (
            self.record != self.recorded
            or bool(self.settings)
            or any(action.is_change for action in self.actions)
            or any(action.is_change for action in self.acls)
        )


@attrs.frozen
class Plan:
    """What a run does to the cluster `cluster_id`, and all problems. With an error it does nothing."""

    applications: tuple[ApplicationPlan, ...]
    problems: tuple[Problem, ...]
    cluster_id: str
    ownership: Ownership | None = None
    """The ownership records of the cluster; None = not read, or no stack plans."""
    ownership_settings: Mapping[str, str] = attrs.field(factory=dict)
    """The settings that the topic of these records gets."""

    @property
    def is_applicable(self) -> bool:
        """Whether the actions may be applied: there is no error."""
        return not errors(self.problems)

    @property
    def has_changes(self) -> bool:
        return any(application.has_changes for application in self.applications)

    @property
    def actions(self) -> Iterator[TopicAction]:
        """Return all actions, application by application."""
        return (action for application in self.applications for action in application.actions)
