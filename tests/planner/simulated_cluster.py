"""Compiled applications for tests, and a simulated cluster that plans are applied to."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from headwater.model.cluster import (
    ClusterEvidence,
    ClusterSnapshot,
    EvidenceSource,
    GroupFacts,
    LiveGroup,
    LiveTopic,
    RegisteredBrokers,
    UnreadCause,
    UnreadEvidence,
)
from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.model.nodes import ChangelogKind
from headwater.model.offset_metadata import MoveMark
from headwater.model.policies import BlastRadius, Effect, Policy
from headwater.model.problems import Location, Problem
from headwater.model.records import OwnershipRecord, SetupRecord
from headwater.model.topology import Application, Lifecycle, Setup, Sink
from headwater.planner import ActionKind, Plan, PlanPolicy, plan

REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"
"""The internal topics of `application()`."""
CLUSTER = "Pb8QEjjNSZeqdoOWZfNKSA"
NO_LIMITS = PlanPolicy()
DENIED_GROUPS = UnreadEvidence(
    source=EvidenceSource.GROUPS,
    cause=UnreadCause.NO_PERMISSION,
    permission="permission Describe on group *",
)
"""The user may not see the groups of other clients."""
GROUPS_OF_STOPPED_BROKERS = UnreadEvidence(source=EvidenceSource.GROUPS, cause=UnreadCause.NO_COORDINATOR)
MANUAL = {"internal.topics.setup": "manual"}
AUTOMATIC: Mapping[str, str] = {}
BOTH = pytest.mark.parametrize("mode", [MANUAL, AUTOMATIC], ids=["manual", "automatic"])
AUTOSCALING = {"partition.autoscaling.enabled": "true", "static.partitioner.class": "tenants:Tenants"}

REPARTITION_CONFIG = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
    "segment.bytes": "52428800",
}
COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
WINDOWED = {
    "cleanup.policy": "compact,delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "90000000",
}
VERSIONED = {**COMPACTED, "min.compaction.lag.ms": "90000000"}
CHANGELOGS = {
    ChangelogKind.KEY_VALUE: COMPACTED,
    ChangelogKind.WINDOWED: WINDOWED,
    ChangelogKind.VERSIONED: VERSIONED,
}


def limits(**maximums: int) -> PlanPolicy:
    """Return a policy that limits the changes of a run. The keywords are values of `Effect`."""
    rule = BlastRadius({Effect(name): limit for name, limit in maximums.items()})
    return PlanPolicy(policies=(Policy(rule=rule, key="blastRadius", at=Location("policies.yaml", 3)),))


def repartition(
    name: str,
    partitions: int,
    subtopology: int = 1,
    replication_factor: int = -1,
    at: Location | None = None,
) -> InternalTopic:
    return InternalTopic(
        name=name,
        kind=TopicKind.REPARTITION,
        partitions=partitions,
        config=REPARTITION_CONFIG,
        subtopology=subtopology,
        node=f"{name}-sink",
        replication_factor=replication_factor,
        at=at,
    )


def changelog(
    name: str,
    partitions: int,
    kind: ChangelogKind = ChangelogKind.KEY_VALUE,
    subtopology: int = 1,
) -> InternalTopic:
    return InternalTopic(
        name=name,
        kind=TopicKind.CHANGELOG,
        partitions=partitions,
        config=CHANGELOGS[kind],
        subtopology=subtopology,
        node=name.removesuffix("-changelog"),
        changelog_kind=kind,
    )


def application(
    *,
    id_: str = "orders",
    sources: Mapping[str, int] | None = None,
    config: Mapping[str, str] | None = None,
    setup: Setup | None = None,
    lifecycle: Lifecycle = Lifecycle.ACTIVE,
    renamed_from: str | None = None,
    stateful: bool = True,
    steps: int = 1,
    sink: Sink | None = None,
    topics: Sequence[InternalTopic] | None = None,
    processors: int | None = None,
) -> CompiledApplication:
    """Return the compiled `source(s) → repartition → … → repartition → changelog (→ sink)`.

    It has `steps` repartition topics. All partition counts are the maximum of the sources, that of the
    changelog is the number of `processors` if it is given. `topics` replaces the internal topics.
    """
    sources = {"orders-in": 4} if sources is None else sources
    partitions = max(sources.values(), default=1)
    repartitions = [f"{id_}-step{number}-repartition" for number in range(1, steps + 1)]
    changelogs = [f"{id_}-counts-changelog"] if stateful else []
    internal = [repartition(name, partitions, number) for number, name in enumerate(repartitions, start=1)]
    internal += [changelog(name, processors or partitions, subtopology=steps) for name in changelogs]
    reads = [tuple(sorted(sources)), *((name,) for name in repartitions)]
    parts = [
        SubTopology(
            id=number,
            nodes=(),
            sources=read,
            sinks=(repartitions[number],) if number < steps else ((sink.topic,) if sink else ()),
            repartition_topics=() if number == 0 else read,
            changelog_topics=tuple(changelogs) if number == steps else (),
            source_changelogs=(),
            stores=(f"{id_}-counts",) if stateful and number == steps else (),
            tasks=partitions,
            source_partitions={topic: sources.get(topic, partitions) for topic in read},
            processors=processors if stateful and number == steps else None,
        )
        for number, read in enumerate(reads)
    ]
    return CompiledApplication(
        application=Application(
            id=id_,
            at=Location(f"{id_}.yaml", 2, 1, "/application"),
            config=config or {},
            lifecycle=lifecycle,
            setup=setup or Setup(),
            renamed_from=renamed_from,
            processors=processors,
        ),
        subtopologies=tuple(parts),
        internal_topics=tuple(internal if topics is None else topics),
        external_sources=tuple(sorted(sources)),
        copartition_groups=((repartitions[0], *sorted(sources)),) if repartitions else (),
        sinks=(attrs.evolve(sink, partitions=sink.partitions or partitions),) if sink else (),
    )


@attrs.define
class SimulatedCluster:
    """A cluster and the setup records of a stack. Each created topic gets its own id."""

    topics: dict[str, LiveTopic] = attrs.field(factory=dict)
    groups: dict[str, LiveGroup] = attrs.field(factory=dict)
    records: dict[str, SetupRecord] = attrs.field(factory=dict)
    brokers: int = 3
    registered: RegisteredBrokers | None = None
    default_min_insync_replicas: int | None = 1
    topic_defaults: dict[str, str] = attrs.field(factory=dict)
    created_topics: int = 0
    group_protocols: frozenset[str] | None = None
    features: Mapping[str, int] | None = None
    processors: dict[str, int] = attrs.field(factory=dict)
    """Application → committed number of processors."""
    moves: dict[str, MoveMark] = attrs.field(factory=dict)
    undeclared: frozenset[str] = frozenset()
    resharded: frozenset[str] = frozenset()
    unread_reshards: dict[str, Problem] = attrs.field(factory=dict)
    unread_processors: dict[str, Problem] = attrs.field(factory=dict)
    readers: dict[str, GroupFacts] = attrs.field(factory=dict)
    """Groups that read topics, by their ids."""
    unread_evidence: tuple[UnreadEvidence, ...] = ()
    ownership: list[OwnershipRecord] = attrs.field(factory=list)
    ownership_policy: str = "compact"

    @classmethod
    def set_up(cls, *applications: CompiledApplication) -> "SimulatedCluster":
        """Return a cluster on which a run has set up these applications."""
        cluster = cls()
        cluster.up(*applications)
        return cluster

    @property
    def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(
            cluster_id=CLUSTER,
            brokers=self.brokers,
            registered=self.registered,
            topics=dict(self.topics),
            groups=dict(self.groups),
            described=frozenset(self.topics),
            default_replication_factor=3,
            default_min_insync_replicas=self.default_min_insync_replicas,
            topic_defaults=dict(self.topic_defaults),
            group_protocols=self.group_protocols,
            features=self.features,
            processors=dict(self.processors),
            moves=dict(self.moves),
            undeclared=self.undeclared,
            resharded=self.resharded,
            unread_reshards=dict(self.unread_reshards),
            unread_processors=dict(self.unread_processors),
            evidence=self.evidence,
        )

    @property
    def evidence(self) -> ClusterEvidence:
        listed = {
            id_: GroupFacts(id=id_, state=group.state, members=group.members or 0)
            for id_, group in self.groups.items()
        }
        return ClusterEvidence(
            groups=listed | self.readers,
            ownership=tuple(self.ownership),
            ownership_policy=self.ownership_policy,
            unread=self.unread_evidence,
        )

    def plan(
        self, *applications: CompiledApplication, policy: PlanPolicy = NO_LIMITS, elapsed_ms: int = 0
    ) -> Plan:
        return plan(applications, self.snapshot, self.records, policy, elapsed_ms)

    def up(self, *applications: CompiledApplication) -> Plan:
        """Plan and apply, as `pulumi up` does; fail if the plan has errors."""
        planned = self.plan(*applications)
        assert planned.is_applicable, planned.problems
        self.apply(planned)
        return planned

    def apply(self, planned: Plan) -> None:
        for action in planned.actions:
            if action.kind is ActionKind.DELETE:
                del self.topics[action.name]
            elif action.live is None and action.kind is not ActionKind.RELEASE:
                assert action.name not in self.topics
                self.create(action.name, action.partitions, action.config, action.replication_factor)
            elif action.kind is not ActionKind.RELEASE:
                self.change(action.name, partitions=action.partitions, config=action.config)
        for application in planned.applications:
            self._store_record(application.application_id, application.record)

    def _store_record(self, application_id: str, record: SetupRecord | None) -> None:
        self.records.pop(application_id, None)
        if record is not None:
            self.records[application_id] = attrs.evolve(
                record,
                topics={
                    name: attrs.evolve(topic, topic_id=self.topics[name].topic_id)
                    if name in self.topics
                    else topic
                    for name, topic in record.topics.items()
                },
            )

    def create(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str] | None = None,
        replication_factor: int = 3,
        *,
        is_empty: bool | None = None,
    ) -> None:
        self.created_topics += 1
        self.topics[name] = LiveTopic(
            name, f"id-{self.created_topics}", partitions, replication_factor, dict(config or {}), is_empty
        )

    def recreate(self, name: str, *, is_empty: bool) -> None:
        old = self.topics[name]
        self.create(name, old.partitions, old.config, old.replication_factor, is_empty=is_empty)

    def change(self, name: str, **fields: Any) -> None:  # noqa: ANN401 - the fields of LiveTopic
        self.topics[name] = attrs.evolve(self.topics[name], **fields)

    def configure(self, name: str, **config: str) -> None:
        """Set configs of a topic. In the keywords, underscores stand for dots."""
        changed = {key.replace("_", "."): value for key, value in config.items()}
        self.change(name, config={**self.topics[name].config, **changed})

    def read_by(self, id_: str, *topics: str, state: str = "Stable") -> None:
        """Let a group read topics: with members, or only with committed offsets if it is Empty."""
        read, none = frozenset(topics), frozenset[str]()
        subscribed, committed = (none, read) if state == "Empty" else (read, none)
        self.readers[id_] = GroupFacts(id=id_, state=state, subscribed=subscribed, committed=committed)

    def run_group(self, id_: str, members: int | None = 2) -> None:
        self.groups[id_] = LiveGroup(id_, "Stable" if members else "Empty", members)
