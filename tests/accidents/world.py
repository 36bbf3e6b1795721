"""Two stacks on one cluster, and everything that may happen to them: the steps of a random search."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import attrs

from headwater.model.cluster import LiveTopic
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipChange, OwnershipRecord
from headwater.pulumi.stack_state import COMPONENT_TYPE, TOPIC_TYPE
from headwater.report.plan_json import plan_digest
from tests.accidents.cluster import AccidentCluster
from tests.accidents.documents import Declared, internal_topics
from tests.accidents.engine import Clock, State
from tests.accidents.ledger import AccidentError, Ledger, Observation
from tests.accidents.simulated import Run, SimulatedStack
from tests.planner.simulated_cluster import COMPACTED, REPARTITION_CONFIG

STACKS = ("one", "two")
IDS = ("pay", "pay-eu", "sales")
STORES = ("a", "eu-a", "b", "c")
SINKS = ("totals", "pay-totals-changelog")
SOURCE, OTHER_SOURCE = "orders", "clicks"
GROUPS = ("audit", "pay", "pay-eu", "sales", "pay-x")
RETENTIONS = (86_400_000, 3_600_000, 604_800_000, -1)
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "as Kafka Streams sets them": COMPACTED,
    "of a repartition topic": REPARTITION_CONFIG,
    "of a user": {"cleanup.policy": "delete", "retention.ms": "-1"},
    "compacted by a user": {"cleanup.policy": "compact"},
    "none": {},
}
CHANGES: tuple[Mapping[str, str], ...] = (
    {"cleanup.policy": "delete"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete", "retention.ms": "-1"},
    {"retention.ms": "-1"},
    {"retention.ms": "1000"},
    {"retention.bytes": "1000"},
    {"min.compaction.lag.ms": "1000"},
)
SWITCHES = ("adopt", "takeOver", "reinitialize", "ifIncomplete")
T = TypeVar("T")


class Choose(Protocol):
    """Chooses one of several options."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def foreign_names() -> tuple[str, ...]:
    """Return names of topics that other clients may create: also those that applications will need."""
    internal = {name for id_ in IDS for name in internal_topics(id_, frozenset(STORES))}
    return (*sorted(internal), "pay-x-y-changelog", "pay-x-repartition", "pay-notes", "payments", *SINKS)


class Mirror(Protocol):
    """Real brokers and a real engine that take the same steps, and are compared after each run."""

    def create(self, name: str, partitions: int, config: Mapping[str, str]) -> None: ...
    def delete(self, name: str) -> None: ...
    def configure(self, name: str, config: Mapping[str, str]) -> None: ...
    def write(self, name: str) -> None: ...
    def commit(self, group: str, name: str) -> None: ...
    def join(self, group: str, name: str) -> None: ...
    def leave(self, group: str) -> None: ...
    def forget(self, group: str) -> None: ...
    def up(self, stack: str, documents: Sequence[Declared], run: Run) -> None: ...
    def up_killed(self, stack: str, documents: Sequence[Declared], released: frozenset[str]) -> None: ...
    def save(self, stack: str) -> None: ...
    def restore(self, stack: str, number: int) -> None: ...
    def lose(self, stack: str) -> None: ...
    def drop(self, stack: str, urn: str) -> None: ...
    def refresh(self, stack: str) -> None: ...
    def unprotect(self, stack: str) -> None: ...
    def destroy(self, stack: str) -> None: ...
    def knows_record(self, key: tuple[str, str]) -> bool: ...
    def write_record(self, record: OwnershipRecord) -> None: ...
    def lose_record(self, key: tuple[str, str]) -> None: ...
    def write_unreadable_record(self, key: tuple[str, str]) -> None: ...


@attrs.define
class World:
    """The cluster, the stacks with their documents, and the ledger that notices accidents."""

    cluster: AccidentCluster = attrs.field(factory=AccidentCluster)
    mirror: Mirror | None = None
    stacks: dict[str, SimulatedStack] = attrs.field(init=False)
    documents: dict[str, dict[str, Declared]] = attrs.field(init=False)
    latest: dict[tuple[str, str], Declared] = attrs.field(factory=dict)
    """The last document of each stack and application."""
    saved: list[tuple[str, State]] = attrs.field(factory=list)
    forgotten: list[OwnershipRecord] = attrs.field(factory=list)
    """Ownership records that were deleted or replaced."""
    ledger: Ledger = attrs.field(factory=Ledger)
    changed: set[str] = attrs.field(factory=set)
    """Ids of the topics that other clients have deleted or reconfigured since the latest run began."""
    created: dict[str, LiveTopic] = attrs.field(factory=dict)
    """Topics that other clients have created since then."""
    runs: int = 0
    finished: int = 0
    deletions: int = 0
    log: list[str] = attrs.field(factory=list)

    @property
    def has_policies(self) -> bool:
        """Whether the second stack has a policy; the real stacks have none."""
        return self.mirror is None

    def __attrs_post_init__(self) -> None:
        self.stacks = {name: SimulatedStack(name, self.cluster) for name in STACKS}
        self.stacks[STACKS[1]].is_careful = self.has_policies
        self.documents = {name: {} for name in STACKS}
        for source in (SOURCE, OTHER_SOURCE):
            self.create(source, "none")

    # Documents

    def declare(self, stack: str, document: Declared) -> None:
        self.log.append(f"declare in {stack}: {document}")
        self.documents[stack][document.id] = document
        self.latest[stack, document.id] = document

    def remove(self, stack: str, id_: str) -> None:
        self.log.append(f"remove from {stack}: {id_}")
        self.documents[stack].pop(id_, None)

    # Runs

    def up(self, stack: str, clock: Clock | None = None, *, is_approved: bool = False) -> Run:
        """Run `up` and check what it did. With `is_approved` only the plan of a preview may be applied.

        The real engine is killed at another moment than the simulated one: the next two runs, which both
        finish, show whether they end in the same way.
        """
        documents = tuple(document for _, document in sorted(self.documents[stack].items()))
        approved = self._approve(stack, documents) if is_approved else None
        self.changed.clear()
        self.created.clear()
        before, records = dict(self.cluster.topics), list(self.cluster.ownership.values())
        run = self.stacks[stack].up(documents, clock, approved)
        # Topics that others have created meanwhile must be there afterwards, too.
        created = {name: topic for name, topic in self.created.items() if topic.topic_id not in self.changed}
        before, after = {**before, **created}, dict(self.cluster.topics)
        self.log.append(f"up {stack}: {run.codes} {run.error} after {run.changes} changes")
        self.runs += 1
        self.finished += run.is_finished
        observed = Observation(
            stack=stack,
            documents=documents,
            run=run,
            before=before,
            after=after,
            others=frozenset(self.changed),
            empty=frozenset(name for name in before if not self.cluster.written[name]),
            is_careful=self.stacks[stack].is_careful,
            has_unreadable=bool(self.cluster.unreadable),
        )
        try:
            self.ledger.check(observed)
        except AccidentError as accident:
            raise self.accident(str(accident)) from None
        self.deletions += len(before.keys() - after.keys())
        self.forgotten += [each for each in records if each not in self.cluster.ownership.values()]
        if self.mirror is None:
            return run
        if clock is None or clock.ends_at is None:
            self.mirror.up(stack, documents, run)
            return run
        self.mirror.up_killed(stack, documents, frozenset(self.ledger.released))
        self.up(stack)
        return self.up(stack)

    def _approve(self, stack: str, documents: Sequence[Declared]) -> str:
        plan = self.stacks[stack].up(documents, is_preview=True).plan
        return plan_digest(plan) if plan is not None else "sha256:none"

    # Other clients

    def create(self, name: str, settings: str, partitions: int = 2) -> None:
        if name not in self.cluster.topics:
            self.log.append(f"others create {name} with settings: {settings}")
            self.cluster.create(name, partitions, SETTINGS[settings])
            self.created[name] = self.cluster.topics[name]
            if self.mirror is not None:
                self.mirror.create(name, partitions, SETTINGS[settings])

    def delete(self, name: str) -> None:
        if name in self.cluster.topics:
            self.log.append(f"others delete {name}")
            self.changed.add(self.cluster.topics[name].topic_id)
            self.cluster.delete(name)
            if name == OWNERSHIP_TOPIC:
                self.cluster.ownership.clear()
                self.cluster.unreadable.clear()
            if self.mirror is not None:
                self.mirror.delete(name)

    def recreate(self, name: str, settings: str) -> None:
        self.delete(name)
        self.create(name, settings)

    def write(self, name: str) -> None:
        if name in self.cluster.topics:
            self.log.append(f"others write to {name}")
            self.cluster.write(name)
            if self.mirror is not None:
                self.mirror.write(name)

    def configure(self, name: str, change: Mapping[str, str]) -> None:
        if name in self.cluster.topics:
            self.log.append(f"others set {name}: {change}")
            self.changed.add(self.cluster.topics[name].topic_id)
            self.cluster.configure(name, change)
            if self.mirror is not None:
                self.mirror.configure(name, change)

    def commit(self, group: str, name: str) -> None:
        if name in self.cluster.topics:
            self.log.append(f"group {group} commits an offset of {name}")
            self.cluster.commit(group, name, {0: ""})
            if self.mirror is not None:
                self.mirror.commit(group, name)

    def join(self, group: str, name: str) -> None:
        self.log.append(f"group {group} reads {name}")
        self.cluster.read_as_member(group, frozenset({name}))
        if self.mirror is not None:
            self.mirror.join(group, name)

    def leave(self, group: str) -> None:
        self.log.append(f"group {group} stops")
        self.cluster.stop(group)
        if self.mirror is not None:
            self.mirror.leave(group)

    def forget(self, group: str) -> None:
        self.log.append(f"group {group} is deleted")
        self.cluster.forget(group)
        if self.mirror is not None:
            self.mirror.forget(group)

    # States

    def save(self, stack: str) -> None:
        self.log.append(f"save the state of {stack}")
        self.saved.append((stack, dict(self.stacks[stack].state)))
        if self.mirror is not None:
            self.mirror.save(stack)

    def restore(self, stack: str, number: int) -> None:
        """Import a state that was saved before, also one of the other stack."""
        former, state = self.saved[number]
        self.log.append(f"restore in {stack} state {number} of {former}")
        renamed = {urn.replace(f":{former}::", f":{stack}::", 1): found for urn, found in state.items()}
        self.stacks[stack].state = renamed
        if self.mirror is not None:
            self.mirror.restore(stack, number)

    def lose(self, stack: str) -> None:
        self.log.append(f"lose the state of {stack}")
        self.stacks[stack].state = {}
        if self.mirror is not None:
            self.mirror.lose(stack)

    def drop(self, stack: str, urn: str) -> None:
        """Remove a resource and its children: `pulumi state delete --target-dependents`."""
        self.log.append(f"remove from the state of {stack}: {urn}")
        state = self.stacks[stack].state
        is_component = state[urn].type == COMPONENT_TYPE
        children = [other for other in state if is_component and _is_child(other, urn, state)]
        for gone in (urn, *children):
            del state[gone]
        if self.mirror is not None:
            self.mirror.drop(stack, urn)

    def refresh(self, stack: str) -> None:
        """Read all topics into the state, as `pulumi refresh` does: those that are gone leave it."""
        self.log.append(f"refresh {stack}")
        state = self.stacks[stack].state
        for urn, resource in list(state.items()):
            if resource.type == TOPIC_TYPE:
                topic = self.cluster.topics.get(resource.name)
                if topic is None:
                    del state[urn]
                    continue
                found = {
                    **resource.inputs,
                    "partitions": topic.partitions,
                    "config": dict(topic.config),
                }
                state[urn] = attrs.evolve(resource, inputs=found, outputs=found)
        if self.mirror is not None:
            self.mirror.refresh(stack)

    def unprotect(self, stack: str) -> None:
        self.log.append(f"remove the protection in the state of {stack}")
        state = self.stacks[stack].state
        for urn, resource in state.items():
            state[urn] = attrs.evolve(resource, protect=False)
        if self.mirror is not None:
            self.mirror.unprotect(stack)

    def destroy(self, stack: str) -> None:
        """Run `pulumi destroy`. Without the program the engine knows no hooks: guarded resources stay."""
        self.log.append(f"destroy {stack}")
        if self.mirror is not None:
            self.mirror.destroy(stack)
        state = self.stacks[stack].state
        if any(resource.protect for resource in state.values()):
            return
        for urn, resource in reversed(list(state.items())):
            if resource.hooks:
                return
            topic = self.cluster.topics.get(resource.name)
            if resource.type == TOPIC_TYPE and not resource.retain and topic is not None:
                raise self.accident(f"{resource.name} ({topic.topic_id}) was deleted by `pulumi destroy`")
            del state[urn]

    # Ownership records

    def knows_record(self, key: tuple[str, str]) -> bool:
        """Return whether the real engine has a record with the same meaning."""
        return self.mirror is None or self.mirror.knows_record(key)

    def lose_record(self, key: tuple[str, str]) -> None:
        self.log.append(f"delete the ownership record {key}")
        if self.mirror is not None:
            self.mirror.lose_record(key)
        self.cluster.write_ownership(OwnershipChange((), (key,)))

    def write_record(self, record: OwnershipRecord) -> None:
        self.log.append(f"write {record}")
        self._ensure_records()
        if self.mirror is not None:
            self.mirror.write_record(record)
        self.cluster.write_ownership(OwnershipChange((record,)))

    def write_unreadable_record(self, key: tuple[str, str]) -> None:
        """Replace a record by an unreadable record, or write a record whose key belongs to no stack."""
        self.log.append(f"write an unreadable record with the key {key}")
        self._ensure_records()
        if self.mirror is not None:
            self.mirror.write_unreadable_record(key)
        self.cluster.write_unreadable_ownership(key)

    def _ensure_records(self) -> None:
        self.create(OWNERSHIP_TOPIC, "compacted by a user", 1)

    def accident(self, text: str) -> AccidentError:
        """Return an error with all steps until now."""
        return AccidentError("\n".join([text, *self.log]))


def _is_child(other: str, parent: str, state: State) -> bool:
    """Whether a resource is below a component; the state does not keep parents, so by its name."""
    id_ = state[parent].name
    return state[other].type != COMPONENT_TYPE and (
        state[other].name == id_ or state[other].name.startswith(f"{id_}-") or state[other].name in SINKS
    )
