"""What the rules read: one active application with its topics, and all applications of a run."""

from collections.abc import Mapping
from functools import cached_property

import attrs

from headwater.compiler.renumbering import renumbering_problems
from headwater.compiler.streams_config import SetupMode
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import PLAN, Caller, Problem, errors
from headwater.model.records import COMPACTION, RecordedTopic, SetupRecord
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.evidence.names import STREAMS_ASSIGNOR
from headwater.planner.evidence.topics import Evidence
from headwater.planner.ownership import Ownership
from headwater.planner.plans import PlanPolicy, TopicAction
from headwater.planner.transfers import Transfer
from headwater.planner.upgrade import ApplicationUpgrade, State, compare_versions


@attrs.frozen(kw_only=True)
class TopicState(CountedTopic):
    """One declared topic with what is on the cluster (`live`) and in the setup record (`recorded`)."""

    live: LiveTopic | None
    recorded: RecordedTopic | None
    is_ours: bool
    """Whether an earlier run set it up, even a run that was interrupted."""
    former: str | None = None
    """The application of the stack that managed it until now, if that is another one."""

    @property
    def is_lost(self) -> bool:
        """Whether it was set up and is no longer on the cluster."""
        return self.live is None and self.recorded is not None and bool(self.recorded.topic_id)

    @property
    def is_replaced(self) -> bool:
        """Whether another topic of this name exists: its id is not the recorded one."""
        if self.live is None or self.recorded is None:
            return False
        return not self.live.may_have_id(self.recorded.topic_id)

    @property
    def is_emptied(self) -> bool:
        """Whether it was replaced by an empty topic, or by one of which that is not known."""
        return self.live is not None and self.is_replaced and self.live.is_empty is not False


@attrs.frozen(kw_only=True)
class ActiveApplication(CountedApplication):
    """One active application before a run. Create it with `from_snapshot`."""

    topics: tuple[TopicState, ...]
    snapshot: ClusterSnapshot
    record: SetupRecord | None
    predecessor: SetupRecord | None = None
    """The record of the id that the application had before (`renamedFrom`)."""
    upgrade: ApplicationUpgrade | None = None
    """What another version of Kafka Streams than the recorded version changes."""
    elapsed_ms: int = 0

    @classmethod
    def from_snapshot(
        cls,
        compiled: CompiledApplication,
        snapshot: ClusterSnapshot,
        record: SetupRecord | None,
        *,
        predecessor: SetupRecord | None = None,
        received: Mapping[str, Transfer] | None = None,
        earlier: CompiledApplication | None = None,
        elapsed_ms: int = 0,
        caller: Caller = PLAN,
    ) -> "ActiveApplication":
        """Return the application with every topic that its topology declares and whose count is decided.

        `received` are the sinks that another application managed until now, by topic. `earlier` is the
        application, compiled for the version of Kafka Streams in the record, if that is another one.
        """

        def state(declared: InternalTopic | Sink, name: str, partitions: int) -> TopicState:
            live = snapshot.topics.get(name)
            transfer = (received or {}).get(name)
            own = record.topics.get(name) if record else None
            if record is not None and not record.retired and own and own.is_retired and live is None:
                own = None  # it was deleted on purpose
            recorded = transfer.recorded if transfer else own
            return TopicState(
                declared=declared,
                partitions=partitions,
                live_partitions=live.partitions if live else None,
                recorded_partitions=recorded.partitions if recorded else None,
                live_records=live.records if live else None,
                live=live,
                recorded=recorded,
                is_ours=recorded is not None or (record is not None and record.unfinished),
                former=transfer.former if transfer else None,
            )

        return cls(
            compiled=compiled,
            topics=(
                *(state(topic, topic.name, topic.partitions) for topic in compiled.internal_topics),
                *(state(sink, sink.topic, sink.partitions) for sink in compiled.sinks if sink.partitions),
            ),
            caller=caller,
            initial=record.initial if record else {},
            present=snapshot.processors.get(compiled.application.id),
            has_undeclared_processors=compiled.application.id in snapshot.undeclared
            and (record is None or not record.topics),
            move=snapshot.moves.get(compiled.application.id),
            is_resharded=compiled.application.id in snapshot.resharded,
            unread_reshard=snapshot.unread_reshards.get(compiled.application.id),
            unread_count=snapshot.unread_processors.get(compiled.application.id),
            snapshot=snapshot,
            record=record,
            predecessor=predecessor,
            upgrade=compare_versions(earlier, compiled, snapshot) if earlier is not None else None,
            elapsed_ms=elapsed_ms,
        )

    @property
    def setup(self) -> Setup:
        """The switches that the document sets for a run."""
        return self.compiled.application.setup

    @property
    def is_manual(self) -> bool:
        return self.config.setup_mode is SetupMode.MANUAL

    @property
    def is_decided(self) -> bool:
        """Whether all topics of the topology and their counts are known."""
        return not errors(self.compiled.problems) and not self.compiled.missing_sources

    @property
    def accepts_loss(self) -> bool:
        """Whether a lost internal topic may be replaced by an empty one.

        An application that is running must not continue on other data: `setup.reinitialize` is for a run of
        Pulumi while it is stopped.
        """
        return not self.is_manual or (self.setup.reinitialize and not self.caller.is_running)

    @cached_property
    def renumberings(self) -> tuple[Problem, ...]:
        """A problem for each topic that the topology now has under another generated name."""
        if self.record is None:
            return ()
        recorded = {name: self.record.origins.get(name, "") for name in self.record.generated}
        return renumbering_problems(recorded, self.compiled, is_refused=not self.accepts_loss)

    @cached_property
    def has_losses(self) -> bool:
        """Whether data of an internal topic that was set up is lost, or would be lost by this run."""
        is_other_version = self.upgrade is not None and self.upgrade.state is State.LOST
        is_lost = any(topic.is_lost or topic.is_emptied for topic in self.internal)
        return is_lost or is_other_version or bool(self.renumberings)

    @property
    def internal(self) -> tuple[TopicState, ...]:
        return tuple(topic for topic in self.topics if topic.is_internal)


@attrs.frozen
class OtherSubscription:
    """Topics that only the document reads (`declared`), or only the running application."""

    declared: tuple[str, ...]
    running: tuple[str, ...]


def other_subscription(compiled: CompiledApplication, group: LiveGroup) -> OtherSubscription | None:
    """Return how the topics of the running application differ from the document; None = not at all, as known.

    Members of a classic group of Kafka Streams subscribe to all topics that their sub-topologies read
    (`TopologyMetadata#allFullSourceTopicNames`); global stores have consumers without a group. During a
    rolling restart, members with two topologies may read the topics of both. Which topics match a pattern is
    decided when the application starts, so applications with patterns are not compared.
    """
    parts = [part for part in compiled.subtopologies if not part.is_global]
    has_patterns = any(part.source_patterns for part in parts)
    is_known = group.assignor == STREAMS_ASSIGNOR and bool(group.subscribed)
    if not is_known or has_patterns or compiled.is_observed or errors(compiled.problems):
        return None
    declared = frozenset(topic for part in parts for topic in part.sources)
    if declared == group.subscribed:
        return None
    return OtherSubscription(
        tuple(sorted(declared - group.subscribed)), tuple(sorted(group.subscribed - declared))
    )


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
        found = Ownership.from_records(
            self.snapshot.ownership, self.snapshot, self.policy.stack, applications
        )
        return attrs.evolve(found, unread=self.snapshot.ownership_topic.unread)

    @cached_property
    def ownership_settings(self) -> Mapping[str, str]:
        """The settings that the topic of the ownership records gets."""
        if self.ownership is None:
            return {}
        changes = self.snapshot.ownership_topic.changes
        if self.policy.configures_records:
            return changes
        return {key: value for key, value in changes.items() if key == COMPACTION}

    @cached_property
    def evidence(self) -> Evidence:
        """What is known about the owners of topics."""
        return Evidence(self.compiled, self.snapshot, self.records)

    @cached_property
    def released(self) -> tuple[SetupRecord, ...]:
        """Records of applications that are released, or that have a new id."""
        former = self._former_ids - {compiled.application.id for compiled in self.compiled}
        return self._records_of(former | self._ids_with(Lifecycle.RELEASED))

    @cached_property
    def retired(self) -> tuple[SetupRecord, ...]:
        """Records of retired applications, in the first or second step of deletion."""
        return (*self.retiring, *self.deleted)

    @cached_property
    def retiring(self) -> tuple[SetupRecord, ...]:
        """First step of deletion: the document says `retired`."""
        return self._records_of(self._ids_with(Lifecycle.RETIRED))

    @cached_property
    def deleted(self) -> tuple[SetupRecord, ...]:
        """Second step of deletion: the document was removed after the first."""
        return tuple(record for record in self.removed if record.retired)

    @cached_property
    def removed(self) -> tuple[SetupRecord, ...]:
        """Records without a document."""
        documents = {compiled.application.id for compiled in self.compiled}
        return self._records_of(self.records.keys() - documents - self._former_ids)

    @property
    def _former_ids(self) -> set[str]:
        return {c.application.renamed_from for c in self.compiled if c.application.renamed_from is not None}

    def _ids_with(self, lifecycle: Lifecycle) -> set[str]:
        return {c.application.id for c in self.compiled if c.application.lifecycle is lifecycle}

    def _records_of(self, ids: set[str]) -> tuple[SetupRecord, ...]:
        return tuple(self.records[id_] for id_ in sorted(ids) if id_ in self.records)
