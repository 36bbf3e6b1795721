"""The input of rules that check a whole run."""

from collections.abc import Mapping
from functools import cached_property

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.planner.application import ActiveApplication
from headwater.planner.evidence.topics import Evidence
from headwater.planner.ownership import Ownership
from headwater.planner.plans import PlanPolicy, TopicAction


def expected_cluster(records: Mapping[str, SetupRecord], policy: PlanPolicy, found: str) -> str:
    """Return the id of a stack's cluster: `found`, the cluster of the run, if none is known.

    The stack's `clusterId` has priority over the setup records, so that a move can be declared.
    """
    recorded = sorted({record.cluster_id for record in records.values() if record.cluster_id})
    return policy.cluster_id or next((id_ for id_ in recorded if id_ != found), found)


@attrs.frozen
class Run:
    """All applications of a run, in order of ids. `actions` are actions of the active applications."""

    compiled: tuple[CompiledApplication, ...]
    active: tuple[ActiveApplication, ...]
    snapshot: ClusterSnapshot
    records: Mapping[str, SetupRecord]
    policy: PlanPolicy
    actions: tuple[TopicAction, ...] = ()

    @property
    def expected_cluster(self) -> str:
        """The id of the cluster that the stack belongs to."""
        return expected_cluster(self.records, self.policy, self.snapshot.cluster_id)

    @cached_property
    def ownership(self) -> Ownership | None:
        """The ownership records as this stack sees them; None = not read, or no stack plans."""
        if self.snapshot.ownership is None or self.policy.stack is None:
            return None
        applications = frozenset(
            {compiled.application.id for compiled in self.compiled} | self.records.keys()
        )
        found = Ownership.of(self.snapshot.ownership, self.snapshot, self.policy.stack, applications)
        return attrs.evolve(found, unread=self.snapshot.ownership_topic.unread)

    @cached_property
    def evidence(self) -> Evidence:
        """What is known about the owners of topics."""
        return Evidence(self.compiled, self.snapshot, self.records)

    @cached_property
    def released(self) -> tuple[SetupRecord, ...]:
        """Records of applications that are released, or that have a new id."""
        former = self._former_ids - {compiled.application.id for compiled in self.compiled}
        return self._recorded(former | self._ids(Lifecycle.RELEASED))

    @cached_property
    def retired(self) -> tuple[SetupRecord, ...]:
        """Records of retired applications, in the first or second step of deletion."""
        return (*self.retiring, *self.deleted)

    @cached_property
    def retiring(self) -> tuple[SetupRecord, ...]:
        """First step of deletion: the document says `retired`."""
        return self._recorded(self._ids(Lifecycle.RETIRED))

    @cached_property
    def deleted(self) -> tuple[SetupRecord, ...]:
        """Second step of deletion: the document was removed after the first."""
        return tuple(record for record in self.removed if record.retired)

    @cached_property
    def removed(self) -> tuple[SetupRecord, ...]:
        """Records without a document."""
        documents = {compiled.application.id for compiled in self.compiled}
        return self._recorded(self.records.keys() - documents - self._former_ids)

    @property
    def _former_ids(self) -> set[str]:
        return {c.application.renamed_from for c in self.compiled if c.application.renamed_from is not None}

    def _ids(self, lifecycle: Lifecycle) -> set[str]:
        return {c.application.id for c in self.compiled if c.application.lifecycle is lifecycle}

    def _recorded(self, ids: set[str]) -> tuple[SetupRecord, ...]:
        return tuple(self.records[id_] for id_ in sorted(ids) if id_ in self.records)
