"""A stack with documents, on a simulated cluster whose topics hold records: fixes are followed on it."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import attrs
import yaml

from headwater.compiler import compile_documents
from headwater.model.acls import Acl, LiveAcls
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, Severity, errors
from headwater.model.records import (
    OwnershipChange,
    OwnershipRecord,
    OwnershipTopic,
    SetupRecord,
    StackIdentity,
)
from headwater.model.topology import TopologyDocument
from headwater.planner import Plan, PlanPolicy, plan
from headwater.planner.claims import change_after, change_before
from headwater.planner.drift import Drift, Finding, find_drift
from headwater.planner.evidence.names import has_internal_name
from headwater.planner.plans import AclActionKind
from headwater.planner.upgrade import compile_recorded, with_recorded_versions
from headwater.spec import load_text
from headwater.spec.policies import load_policies_text
from headwater.spec.yaml_text import document_yaml
from tests.planner.simulated_cluster import SimulatedCluster
from tests.yaml_text import load_yaml

Document = dict[str, Any]


@attrs.define
class Trial:
    """Documents by application id, policies, and the cluster with the records of one stack.

    `filled` are the ids of topics that hold records. A topic that is created is empty.
    """

    documents: dict[str, Document] = attrs.field(factory=dict)
    policies: list[Document] = attrs.field(factory=list)
    cluster: SimulatedCluster = attrs.field(factory=SimulatedCluster)
    filled: dict[str, int] = attrs.field(factory=dict)
    """Id of a topic that holds records → the partition count by which their keys were distributed."""
    stack: StackIdentity | None = None
    cluster_id: str | None = None
    ownership: tuple[OwnershipRecord, ...] | None = None
    ownership_topic: OwnershipTopic = OwnershipTopic()  # noqa: RUF009 - immutable
    acls: LiveAcls | None = None
    elapsed_ms: int = 0
    configures_records: bool = True
    """False with `headwater:ownership: acls`."""
    refuses_record_settings: bool = False
    """Whether a policy of the brokers refuses settings of the topic of ownership records."""
    _compiled: (
        tuple[tuple[TopologyDocument, ...], Mapping[str, int], tuple[CompiledApplication, ...]] | None
    ) = None
    """Documents and partition counts that were compiled last, and the result: most steps need it again."""

    def declare(self, text: str) -> Document:
        """Add a document, or replace the document of the same application, and return it to be changed."""
        document: Document = load_yaml(text)
        self.documents[document["application"]["id"]] = document
        return document

    def compile(self) -> tuple[tuple[TopologyDocument, ...], tuple[CompiledApplication, ...]]:
        if not self.documents:
            return (), ()
        loaded = _load_documents("---\n".join(map(document_yaml, self.documents.values())))
        documents = with_recorded_versions(loaded, self.records)
        partitions = self.cluster.snapshot.partitions
        if self._compiled is None or self._compiled[:2] != (documents, partitions):
            self._compiled = documents, partitions, compile_documents(documents, partitions)
        return documents, self._compiled[2]

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The cluster, with the number of records of each topic."""
        found = self.cluster.snapshot
        topics = {name: self._observed(topic) for name, topic in found.topics.items()}
        return attrs.evolve(
            found,
            topics=topics,
            ownership=self.ownership,
            ownership_topic=self.ownership_topic,
            acls=self.acls,
        )

    @property
    def records(self) -> Mapping[str, SetupRecord]:
        return self.cluster.records

    def plan(self) -> Plan:
        documents, compiled = self.compile()
        snapshot = self.snapshot
        limits = PlanPolicy(
            cluster_id=self.cluster_id,
            policies=self._policies(),
            stack=self.stack,
            configures_records=self.configures_records,
        )
        earlier = compile_recorded(documents, self.records, snapshot.partitions)
        return plan(compiled, snapshot, self.records, limits, self.elapsed_ms, earlier=earlier)

    def drift(self) -> Drift:
        _, compiled = self.compile()
        return find_drift(compiled, self.snapshot, self.records)

    def up(self) -> Plan:
        """Apply the plan, as `pulumi up` does; fail if it has errors."""
        planned = self.plan()
        assert planned.is_applicable, planned.problems
        if planned.ownership is not None:
            changes = {} if self.refuses_record_settings else planned.ownership_settings
            settings = {**self.ownership_topic.settings, **changes}
            self.ownership_topic = attrs.evolve(self.ownership_topic, settings=settings)
            self._record(change_before(planned, planned.ownership))
        self.cluster.apply(planned)
        if self.acls is not None:
            self.acls = attrs.evolve(self.acls, allowed=self.acls.allowed | _granted(planned))
        if planned.ownership is not None:
            self._record(change_after(planned, planned.ownership, self.records))
        return planned

    def _record(self, change: OwnershipChange) -> None:
        records = {record.key: record for record in self.ownership or ()}
        records |= {record.key: record for record in change.written}
        self.ownership = tuple(record for each, record in records.items() if each not in change.deleted)
        replaced = {*change.deleted, *(record.key for record in change.written)}
        unread = tuple(each for each in self.ownership_topic.unread if each.key not in replaced)
        self.ownership_topic = attrs.evolve(self.ownership_topic, unread=unread)

    def fill(self, *names: str) -> None:
        """Let applications write records to topics."""
        for name in names:
            topic = self.cluster.topics[name]
            self.filled[topic.topic_id] = topic.partitions

    def settings(self, id_: str = "orders") -> Document:
        """Return the section `application` of a document, to be changed."""
        section: Document = self.documents[id_]["application"]
        return section

    def configure(self, **config: str) -> None:
        """Set configs of the application in its document. In the keywords, underscores stand for dots."""
        for name, value in config.items():
            self.settings().setdefault("config", {})[name.replace("_", ".")] = value

    def switch(self, **setup: object) -> None:
        """Set switches of a run in the document."""
        self.settings()["setup"] = {**self.settings().get("setup", {}), **setup}

    def step(self, call: str) -> Document:
        """Return the arguments of the first call of this name, to be changed."""
        step: Document = next(each for each in self.documents["orders"]["topology"] if call in each)
        return step

    def restore(self, name: str) -> None:
        """Create a topic again, with its records, from a backup."""
        declared = {topic.name: topic for each in self.compile()[1] for topic in each.internal_topics}
        self.cluster.create(name, declared[name].partitions, declared[name].config)
        self.fill(name)

    def empty(self, name: str) -> None:
        self.filled.pop(self.cluster.topics[name].topic_id, None)

    def delete(self, name: str) -> None:
        """Delete a topic on the cluster, as `kafka-topics.sh --delete` does."""
        del self.cluster.topics[name]

    def unusable(self) -> dict[str, str]:
        """Return topic id → what happened to its records: deleted, not read, or away from their keys."""
        _, compiled = self.compile()
        used = {topic.name for each in compiled for topic in each.internal_topics}
        ids = tuple(f"{each.application.id}-" for each in compiled)
        live = {topic.topic_id: topic for topic in self.cluster.topics.values()}
        lost: dict[str, str] = {}
        for id_, partitions in self.filled.items():
            if id_ not in live:
                lost[id_] = "deleted"
            elif _is_unused(live[id_].name, ids, used):
                lost[id_] = f"{live[id_].name} is no longer used"
            elif self._moves_keys(live[id_].name, partitions, compiled):
                lost[id_] = f"keys of {live[id_].name} belong to other partitions"
        return lost

    def _moves_keys(self, name: str, partitions: int, compiled: tuple[CompiledApplication, ...]) -> bool:
        """Return whether the application expects the keys of a changelog in other partitions than before."""
        for each in compiled:
            for topic in each.internal_topics:
                is_static = any(key.endswith("static.partitioner.class") for key in each.application.config)
                if topic.name == name and topic.kind.value == "changelog" and not is_static:
                    return topic.partitions != partitions and each.application.processors is None
        return False

    def _observed(self, topic: LiveTopic) -> LiveTopic:
        is_filled = topic.topic_id in self.filled
        return attrs.evolve(topic, is_empty=not is_filled, records=7 if is_filled else 0)

    def _policies(self) -> tuple[Policy, ...]:
        if not self.policies:
            return ()
        loaded = load_policies_text(yaml.safe_dump({"policies": self.policies}), "policies.yaml")
        assert not loaded.problems, loaded.problems
        return loaded.policies


@cache
def _load_documents(text: str) -> tuple[TopologyDocument, ...]:
    """Return the documents of a text. Most steps of a trial read the same text again."""
    loaded = load_text(text, "app.yaml")
    assert not errors(loaded.problems), loaded.problems
    return loaded.documents


def _granted(planned: Plan) -> frozenset[Acl]:
    actions = (action for part in planned.applications for action in part.acls)
    return frozenset(
        action.acl for action in actions if action.kind in (AclActionKind.GRANT, AclActionKind.RESTORE)
    )


def _is_unused(name: str, ids: tuple[str, ...], used: set[str]) -> bool:
    """Return whether an application that has a document no longer uses its internal topic."""
    return name.startswith(ids) and has_internal_name(name) and name not in used


Follow = Callable[[Trial], object]
Fault = Problem | Finding
_FOR_ONE_RUN = ("adopt", "reinitialize", "takeOver", "ifIncomplete")
_GIVES_UP = re.compile(
    r"without|lose|lost|not needed|empty|Delete|delete|reset|processed all|needs it|retired|may be "
    "deleted|Rebuild"
)


def run_only(trial: Trial) -> None:
    """Follow an instruction that says what the next run does."""
    del trial


def steps(*follows: Follow) -> Follow:
    """Return an instruction of several steps."""

    def follow(trial: Trial) -> None:
        for step in follows:
            step(trial)

    return follow


@attrs.frozen(kw_only=True)
class Advice:
    """An instruction in the fix of a problem or finding, and a function that does what it says.

    `says` is a part of the fix. With `gives_up` the instruction itself says that data is given up. `leaves`
    are the codes of faults that the instruction leaves on purpose, because it says so.
    """

    says: str
    make: Callable[[], Trial]
    follow: Follow = run_only
    """What it says, done to the trial; by default nothing but the run."""
    gives_up: bool = False
    leaves: tuple[str, ...] = ()
    runs: int = 1

    def addressed(self, found: list[Fault]) -> list[Fault]:
        """Return the faults whose fix has the instruction."""
        addressed = [fault for fault in found if self.says in fault.fix]
        assert addressed, [fault.fix for fault in found]
        return addressed

    def check(self) -> None:
        """Follow the instruction: its fault is gone, there is no other one, and no data is lost."""
        trial = self.make()
        before = faults(trial)
        addressed = self.addressed(before)
        CHECKED[self] = tuple(addressed)
        known = {key(fault) for fault in before}
        self.follow(trial)
        planned = trial.plan()
        new = [each for each in errors(planned.problems) if key(each) not in known - set(map(key, addressed))]
        assert not new, new
        for _ in range(self.runs):
            if trial.plan().is_applicable:
                trial.up()
        for document in trial.documents.values():
            for switch in _FOR_ONE_RUN:
                document["application"].get("setup", {}).pop(switch, None)
        found = faults(trial)
        remaining = {key(fault): fault for fault in found if fault.severity is not Severity.INFO}
        infos = {key(fault): fault for fault in found if fault.severity is Severity.INFO}
        for fault in addressed:
            assert key(fault) not in remaining, remaining[key(fault)]
            assert key(fault) not in infos or key(fault)[0] in self.leaves, infos[key(fault)]
        others = [each for each in remaining if each not in known and each[0] not in self.leaves]
        assert not others, [remaining[each] for each in others]
        if self.gives_up:
            assert all(_GIVES_UP.search(fault.fix) for fault in addressed)
        else:
            assert not trial.unusable()


CHECKED: dict[Advice, tuple[Fault, ...]] = {}
"""Advice that was followed in this process → the faults that it is for."""


def faults(trial: Trial) -> list[Fault]:
    """Return what the plan and the drift report."""
    return [*trial.plan().problems, *trial.drift().findings]


def key(fault: Fault) -> tuple[str, str | None, str | None, str]:
    """Return what identifies a fault: its text may change while it is being fixed."""
    if isinstance(fault, Problem):
        return (str(fault.code), fault.application, fault.topic, "")
    return (str(fault.kind), fault.application, fault.topic, (fault.expected or "").split(" ")[0])
