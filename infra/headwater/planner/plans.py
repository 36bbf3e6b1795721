"""The plan: the one value that Pulumi applies and that previews, texts and reports show."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, errors
from headwater.model.records import SetupRecord, StackIdentity
from headwater.planner.actions import AclAction, TopicAction
from headwater.planner.document_settings import SettingChange
from headwater.planner.ownership import Ownership


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
