"""What a reshard changes: which topics get which counts, and where entries and offsets go. No effects."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.model.nodes import StateStore
from headwater.model.problems import Problem
from headwater.model.topology import Protocol, TopologyDocument
from headwater_spark.driver.processor_move.moves import MovedPart
from headwater_spark.driver.reshard import input_problems, problems
from headwater_spark.driver.reshard.input_changes import InputChange
from headwater_spark.engine.partitioners.hashing import UserPartitioner
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.partitioning import PartitionRule
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.entry_layouts import EntryLayout
from headwater_spark.engine.scaling.moved_stores import MovedStore, NotMovable, moved_stores
from headwater_spark.engine.scaling.processors import DEFAULT_PARTITIONERS
from headwater_spark.engine.scaling.transfers import LeftCounts, Transfer

_SUBSCRIPTIONS = ("-subscription-registration-topic", "SUBSCRIPTION-REGISTRATION-")
_OF_KAFKA_STREAMS = "org.apache.kafka.streams."
_REMEDIES: Mapping[NotMovable, str] = {
    NotMovable.NOT_LOGGED: "Reset the application, so that it processes its input again.",
    NotMovable.ANY_KEYS: "If each key of the store is the key of the record that is processed, declare "
    "`keyed: record` for the store. Otherwise reset the application.",
    NotMovable.WINDOWED_KEYS: "Reset the application, so that it processes its input again.",
}
FindLayout = Callable[[StateStore, str, int, UserPartitioner | None], Sequence[EntryLayout]]
"""Returns the layouts that a store may have, from its entries.

Arguments: the store, its changelog topic, the partition count, the partitioner of its input.
"""
WRITERS = 4
"""So many processes may move entries. Another execution fences all of them: do not reduce the number."""
MOST_WRITERS = 1000
"""So many tasks of Spark may move entries. Their number is in the journal before they write."""


@attrs.frozen
class Reshard:
    """The reshard of one application. `sources` is source topic → requested count, if it has fewer."""

    application: str
    transfers: tuple[Transfer, ...]
    inputs: tuple[InputChange, ...]
    sources: Mapping[str, int]
    protocol: Protocol = Protocol.CLASSIC
    """The group protocol of the application."""

    @property
    def producer_name(self) -> str:
        return producer_name(self.application)

    @property
    def rewritten_topics(self) -> Mapping[str, int]:
        """Return topic → count of the inputs whose unprocessed records are written again."""
        return {each.topic: each.after for each in self.inputs if each.is_rewritten}

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Topic → (count before, count after) of all topics that change: what the journal keeps."""
        inputs = {each.topic: (each.before, each.after) for each in self.inputs}
        return inputs | {each.source: (each.before, each.after) for each in self.transfers}

    @property
    def expansions(self) -> Mapping[str, int]:
        """Topic → count, of all topics that are expanded."""
        changelogs = {each.source: each.after for each in self.transfers}
        return {**changelogs, **self.rewritten_topics, **self.sources}

    @property
    def join_buffers(self) -> Sequence[str]:
        """Changelog topics of buffered records, which Kafka Streams does not restore (facts 0.1)."""
        return [
            each.source for each in self.transfers if each.store is not None and each.store.is_join_buffer
        ]

    @property
    def settled(self) -> frozenset[str]:
        """The changelog topics of tasks whose source topics have the new count already.

        The application cannot start until they have it, too.
        """
        return frozenset(
            store.changelog
            for each in self.inputs
            if not each.is_internal and each.present >= each.after > each.before
            for store in each.part.stores
        )

    @property
    def input_partitions(self) -> Sequence[TopicPartition]:
        """The present partitions of the inputs."""
        return [(each.topic, number) for each in self.inputs for number in range(each.present)]

    @property
    def changelog_partitions(self) -> Sequence[TopicPartition]:
        return [(each.source, partition) for each in self.transfers for partition in range(each.before)]


@attrs.frozen(kw_only=True)
class Request:
    """What a user requests. `present` is topic → partition count, as it was before the reshard.

    `rewritten` are source topics whose unprocessed records are written again. `layouts` is store → layout.
    `partitioners` is source or repartition topic → its partitioner, if that is not Kafka's default one.
    `known_layouts` is changelog topic → layout, as the reshard that has begun has found it: the entries may
    not show it any more.
    """

    document: TopologyDocument
    compiled: CompiledApplication
    programs: tuple[SubtopologyProgram, ...]
    before: Mapping[str, int]
    present: Mapping[str, int]
    rewritten: frozenset[str] = frozenset()
    layouts: Mapping[str, EntryLayout] = attrs.field(factory=dict)
    known_layouts: Mapping[str, EntryLayout] = attrs.field(factory=dict)
    partitioners: Mapping[str, UserPartitioner] = attrs.field(factory=dict)


def producer_name(application: str) -> str:
    """Return the transactional id: a second reshard fences the first one."""
    return f"{application}-headwater-reshard"


def worker_names(application: str, number: int) -> Sequence[str]:
    """Return the transactional ids of the processes or tasks that move entries."""
    return [f"{producer_name(application)}-{each}" for each in range(number)]


def plan_reshard(request: Request, find_layout: FindLayout) -> tuple[Reshard, tuple[Problem, ...]]:
    """Return the reshard for `request.compiled`, which has the new counts, and all that prevents it."""
    planner = _ReshardPlanner(request, find_layout)
    found = tuple(planner.problems())
    parts = [] if found else [planner.part(part) for part in planner.stateful_subtopologies()]
    wrong = [problem for _, _, each in parts for problem in each]
    transfers = tuple(transfer for each, _, _ in parts for transfer in each)
    inputs = [change for _, each, _ in parts for change in each]
    if not found:
        inputs += planner.stateless_inputs()
    sources = {
        topic: count
        for topic, count in planner.source_counts().items()
        if count > request.present.get(topic, count)
    }
    application = request.document.application
    reshard = Reshard(application.id, transfers, tuple(inputs), sources, application.protocol)
    return reshard, (*found, *wrong)


class _ReshardPlanner:
    """What a request means for one application: its problems, inputs and state to move."""

    def __init__(self, request: Request, find_layout: FindLayout) -> None:
        self._request = request
        self._find_layout = find_layout
        self._application = request.document.application
        self._internal = {topic.name: topic for topic in request.compiled.internal_topics}
        self._programs = {program.name: program for program in request.programs}

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the application as a whole."""
        application, at = self._application.id, self._application.at
        if self._application.processors is not None:
            yield problems.with_processors(application, at)
        partitioner = StreamsConfig.from_application(self._application).static_partitioner
        if partitioner not in DEFAULT_PARTITIONERS[:2]:
            yield input_problems.other_partitioner(application, str(partitioner), at)
        if missing := sorted(self._internal.keys() - self._request.before.keys()):
            yield problems.missing_topics(application, missing)
        for name, topic in self._internal.items():
            if topic.partitions < self._request.before.get(name, 0):
                yield problems.fewer_partitions(
                    application, name, self._request.before[name], topic.partitions
                )
        yield from self._partitioner_problems()
        yield from self._named_partitioner_problems()
        unknown = sorted(
            store.name
            for program in self._request.programs
            for store in program.stores
            if store.keeps is None and not store.is_global
        )
        for store in sorted(self._request.layouts.keys() - set(unknown)):
            yield problems.needless_layout(application, store, unknown)

    def stateful_subtopologies(self) -> Sequence[SubTopology]:
        return [part for part in self._request.compiled.subtopologies if part.is_stateful]

    def source_counts(self) -> Mapping[str, int]:
        """Return source topic → its count after the reshard."""
        parts = self._request.compiled.subtopologies
        return {
            topic: count
            for part in parts
            for topic, count in part.source_partitions.items()
            if topic not in self._internal
        }

    def part(self, part: SubTopology) -> tuple[Sequence[Transfer], Sequence[InputChange], Sequence[Problem]]:
        """Return what changes for a sub-topology with state."""
        changelogs = {topic: self._request.before[topic] for topic in part.changelog_topics}
        inputs = dict(part.source_partitions)
        internal = {topic: self._request.before[topic] for topic in inputs if topic in self._internal}
        before = max({**changelogs, **internal}.values(), default=0)
        left, left_problems = self._left_counts(part)
        is_changed = before != part.tasks or (left is not None and left.before != left.after)
        if not is_changed and all(self._request.present.get(topic) == n for topic, n in inputs.items()):
            return (), (), ()
        if not is_changed and not part.source_changelogs:
            # A client has expanded the changelog topics, or another source topic is wider: the entries are in
            # the tasks of the present counts of the inputs, so they would have to move.
            present = {topic: self._request.present.get(topic, 0) for topic in inputs}
            return (), (), [self._different_counts(part, {**changelogs, **internal, **present}, "now")]
        wrong: list[Problem] = list(left_problems)
        if len({*changelogs.values(), *internal.values()}) > 1:
            wrong.append(self._different_counts(part, {**changelogs, **internal}, "now"))
        if len(set(inputs.values())) > 1:
            wrong.append(self._different_counts(part, inputs, "at the new counts"))
        if wrong:
            return (), (), wrong
        partitioner = self._partitioner_of(part)
        stores, store_problems = self._moved_stores(part, before)
        transfers = [
            Transfer(
                store.changelog,
                store.changelog,
                before,
                part.tasks,
                store,
                left if store.has_subscriptions else None,
                partitioner,
            )
            for store in stores
            if before != part.tasks or store.has_subscriptions
        ]
        moved = MovedPart(str(part.id), inputs, tuple(stores))
        changes = [self._input_change(topic, before, moved, left) for topic in sorted(inputs)]
        return transfers, changes, store_problems

    def stateless_inputs(self) -> Sequence[InputChange]:
        """Return the inputs of other sub-topologies that get more partitions."""
        found = []
        for part in self._request.compiled.subtopologies:
            if part.is_stateful or part.is_global:
                continue
            left, _ = self._left_counts(part)
            for topic, after in sorted(part.source_partitions.items()):
                before = self._request.before.get(topic, after)
                if before != after:
                    moved = MovedPart(str(part.id), {topic: after}, ())
                    found.append(self._input_change(topic, before, moved, left))
        return found

    def _input_change(self, topic: str, before: int, part: MovedPart, left: LeftCounts | None) -> InputChange:
        is_internal = topic in self._internal
        partitioner = self._request.partitioners.get(topic)
        return InputChange(
            topic,
            before,
            part.inputs[topic],
            self._request.present.get(topic, 0),
            part,
            is_internal=is_internal,
            is_rewritten=is_internal or topic in self._request.rewritten,
            left=left if is_internal and _is_subscription(self._internal[topic]) else None,
            partitioner=partitioner,
        )

    def _moved_stores(self, part: SubTopology, before: int) -> tuple[Sequence[MovedStore], Sequence[Problem]]:
        program = self._programs[str(part.id)]
        movable, refused = moved_stores(program)
        known = {store.name: store for store in movable}
        reasons = {store.name: reason for store, reason in refused}
        wrong: list[Problem] = []
        found: list[MovedStore] = []
        for store in program.stores:
            if store.is_global:
                continue
            changelog = program.changelog(store.name)
            if changelog is None:
                wrong.append(self._without_changelog(program, store))
            elif changelog in self._request.known_layouts:
                found.append(self._request.known_layouts[changelog].moved_store(store.name, changelog))
            elif store.name in self._request.layouts:
                found.append(self._request.layouts[store.name].moved_store(store.name, changelog))
            elif store.name in known:
                found.append(known[store.name])
            elif store.keeps is not None:
                reason = reasons[store.name]
                wrong.append(
                    problems.store_refused(
                        self._application.id, store.name, reason.value, _REMEDIES[reason], store.at
                    )
                )
            else:
                layouts = self._find_layout(store, changelog, before, self._partitioner_of(part))
                if len(layouts) == 1:
                    found.append(layouts[0].moved_store(store.name, changelog))
                else:
                    names = [layout.name for layout in layouts]
                    wrong.append(problems.unclear_layout(self._application.id, store.name, names, store.at))
        return found, wrong

    def _without_changelog(self, program: SubtopologyProgram, store: StateStore) -> Problem:
        source = program.source_changelog(store.name)
        reason = (
            "it has no changelog topic"
            if source is None
            else f"it is restored from the source topic {source}"
        )
        fix = "Reset the application, so that it processes its input again."
        if source is not None:
            fix = (
                "Without the optimization `reuse.ktable.source.topics`, the store has a changelog topic. Or "
                "write the table again to a topic with the new count."
            )
        return problems.store_refused(self._application.id, store.name, reason, fix, store.at)

    def _left_counts(self, part: SubTopology) -> tuple[LeftCounts | None, Sequence[Problem]]:
        """Return the counts of the left table, if a sub-topology reads subscriptions of a join."""
        reads = any(
            topic in self._internal and _is_subscription(self._internal[topic]) for topic in part.sources
        )
        if not reads:
            return None, ()
        responses = [
            self._internal[topic]
            for topic in part.sinks
            if topic in self._internal
            and self._internal[topic].kind is TopicKind.FK_SUBSCRIPTION
            and not _is_subscription(self._internal[topic])
        ]
        counts = {(self._request.before.get(each.name, 0), each.partitions) for each in responses}
        if len(counts) != 1:
            names = [each.name for each in responses]
            return None, [problems.different_left_counts(self._application.id, "of subscriptions", names)]
        return LeftCounts(*counts.pop()), ()

    def _partitioner_problems(self) -> Iterator[Problem]:
        """Yield the sinks with a partitioner whose topics the application reads itself."""
        read = {topic for part in self._request.compiled.subtopologies for topic in part.sources}
        exported = self._request.document.exported
        named = exported.partitioners if exported is not None else {}
        for program in self._request.programs:
            for sink, topic in program.sinks.items():
                rule = program.partitioning[sink].rule
                theirs = named.get(sink)
                if topic not in read or topic in self._request.partitioners:
                    continue
                if rule not in (PartitionRule.DEFAULT, PartitionRule.ANSWER) or (
                    theirs is not None and not theirs.startswith(_OF_KAFKA_STREAMS)
                ):
                    chosen = theirs or program.partitioning[sink].partitioner or rule.value
                    what = f"sink {sink} writes {topic} by {chosen}"
                    yield input_problems.other_partitioner(self._application.id, what, self._application.at)

    def _partitioner_of(self, part: SubTopology) -> UserPartitioner | None:
        """Return the partitioner of the inputs of a sub-topology; all have the same one."""
        return next(map(self._request.partitioners.get, sorted(part.source_partitions)), None)

    def _named_partitioner_problems(self) -> Iterator[Problem]:
        """Yield partitioners of topics that are no inputs, and inputs of a task that have different ones."""
        application, named = self._application.id, self._request.partitioners
        parts = [part for part in self._request.compiled.subtopologies if not part.is_global]
        read = {topic for part in parts for topic in part.source_partitions}
        for topic in sorted(named.keys() - read):
            yield input_problems.needless_partitioner(application, topic, sorted(read))
        for part in parts:
            found = {topic: named.get(topic) for topic in sorted(part.source_partitions)}
            if len(set(found.values())) > 1:
                shown = {topic: "default" if each is None else each.name for topic, each in found.items()}
                yield input_problems.different_partitioners(application, str(part.id), shown)
        if named and any(map(_is_subscription, self._internal.values())):
            what = "foreign-key joins cannot move with --partitioner"
            yield input_problems.other_partitioner(application, what, self._application.at)

    def _different_counts(self, part: SubTopology, counts: Mapping[str, int], when: str) -> Problem:
        return problems.different_counts(self._application.id, str(part.id), counts, when)


def _is_subscription(topic: InternalTopic) -> bool:
    """Return whether a topic has subscriptions of a foreign-key join; its name is fixed (KIP-213)."""
    is_foreign_key = topic.kind is TopicKind.FK_SUBSCRIPTION
    return is_foreign_key and any(part in topic.name for part in _SUBSCRIPTIONS)
