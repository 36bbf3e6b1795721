"""Passes that check names, unused stores, retention, settings without effect, and processors (KIP-287)."""

import re
from collections.abc import Iterable, Iterator, Mapping

from headwater.compiler import messages
from headwater.compiler.compilation import Compilation
from headwater.compiler.internal_topics import changelog_config
from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH, LONGEST_MS, Guarantee
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.compiled import InternalTopic
from headwater.model.durations import duration_text
from headwater.model.nodes import ChangelogKind, ProcessorNode, SinkNode
from headwater.model.problems import Location, Problem, ProblemCode, Severity, errors
from headwater.model.topology import Application, Protocol, Sink, TopologyDocument

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_names(compilation: Compilation) -> Compilation:
    """Check the names of internal topics (`Topic#validate`); report an invalid application id once."""
    prefix = compilation.naming.prefix
    topics = {topic: details.at for topic, details in compilation.repartition.items()}
    topics |= {
        topic: store.at
        for group in compilation.groups
        for topic, store in group.changelogs.items()
        if store.changelog_topic is None
    }
    if topics and not _LEGAL.fullmatch(prefix):
        return compilation.with_problems(
            [
                messages.invalid_topic_name(
                    min(topics), f"the application id {prefix!r} has invalid characters", None
                )
            ]
        )
    problems = []
    for topic, at in sorted(topics.items()):
        if not _LEGAL.fullmatch(topic):
            problems.append(messages.invalid_topic_name(topic, "it has invalid characters", at))
        elif len(topic) > messages.LONGEST_NAME:
            problems.append(messages.invalid_topic_name(topic, f"it has {len(topic)} characters", at))
    return compilation.with_problems(problems)


def check_stores(compilation: Compilation) -> Compilation:
    """Warn of stores that no processor uses: Kafka Streams neither opens them nor creates a changelog.

    A topology with errors is not complete: a store may be unused only because its processor was refused.
    """
    if errors(compilation.topology.problems):
        return compilation
    used = {
        store
        for node in compilation.topology.nodes
        if isinstance(node, ProcessorNode)
        for store in node.stores
    }
    problems = [
        Problem(
            code=ProblemCode.UNUSED_STORE,
            summary=f"No processor uses the store {store.name}.",
            node=store.name,
            expected="a processor connected to it",
            found="none",
            why="Kafka Streams ignores the store: it is never opened and gets no changelog topic.",
            fix="Connect it to a processor, or remove it.",
            location=store.at,
            severity=Severity.WARNING,
        )
        for store in compilation.topology.stores
        if store.name not in used and not store.is_global
    ]
    return compilation.with_problems(problems)


def check_read_only_stores(compilation: Compilation) -> Compilation:
    """Report processors of a read-only store in a sub-topology that does not read the topic of the store.

    Kafka Streams builds them if the builder of the store is added again, which disconnects processors
    (`STORE_ADDED_AGAIN_STAYS_CONNECTED`). If the other processors are connected last, the topic is a
    changelog topic, whose count has to be their number of tasks (`ChangelogTopics#setup`).
    """
    filled = {
        store.name: store.changelog_topic
        for store in compilation.topology.stores
        if store.changelog_topic is not None and not store.is_global
    }
    problems = []
    for group in compilation.groups:
        for store in filled.keys() & set(group.stores):
            topic = filled[store]
            if topic in group.sources or group.is_global:
                continue
            users = [node for node in group.nodes.nodes if store in getattr(node, "stores", ())]
            problems.append(messages.filled_elsewhere(store, topic, users))
            count, tasks = compilation.counts.get(topic), compilation.tasks.get(group.id)
            if topic not in group.changelogs or compilation.application.protocol is Protocol.STREAMS:
                continue  # a broker compares the counts of all changelog topics itself
            if count is not None and tasks is not None and count != tasks:
                problems.append(messages.unequal_changelog(store, topic, users[0], count, tasks))
    return compilation.with_problems(problems)


def check_retention(compilation: Compilation) -> Compilation:
    """Check that the retention of each store, a sum of durations, fits into a Java `long`."""
    problems = [
        Problem(
            code=ProblemCode.INVALID_TOPOLOGY,
            summary=f"Store {store.name} has a retention that does not fit into a Java long (milliseconds).",
            node=store.name,
            expected=f"window, gap or difference and grace of at most {duration_text(LONGEST_MS)} together",
            found=duration_text(store.base_ms),
            why="Kafka Streams throws IllegalArgumentException: the sum turns negative.",
            fix="Shorten the window or its grace.",
            location=store.at,
        )
        for store in compilation.topology.stores
        if store.base_ms is not None and store.base_ms > LONGEST_MS
    ]
    return compilation.with_problems(problems)


def check_computed_settings(compilation: Compilation) -> Compilation:
    """Warn of `topic.` configs that Kafka Streams overrides with a computed value (facts 5.1)."""
    config = compilation.config
    problems = []
    for key, kinds in _COMPUTED.items():
        given = config.topic_overrides.get(key)
        if given is None:
            continue
        passed_by = {
            store.name: computed
            for group in compilation.groups
            for store in group.changelogs.values()
            if store.kind in kinds and store.changelog_topic is None
            for computed in [
                changelog_config(store, config.topic_overrides, config.additional_retention_ms)[key]
            ]
            if computed != given and key not in store.overrides
        }
        if passed_by:
            problems.append(messages.computed_setting(key, given, passed_by, compilation.form))
    return compilation.with_problems(problems)


def compaction_lag_problems(topics: Iterable[InternalTopic], sinks: Iterable[Sink]) -> Iterator[Problem]:
    """Yield problems of topics whose smallest compaction lag is above the largest (`LogConfig#validate`).

    The limits of single settings are checked where a document is read.
    """
    located: list[tuple[str, Mapping[str, str], Location | None]] = [
        *((topic.name, topic.config, topic.at) for topic in topics),
        *((sink.topic, sink.config, None) for sink in sinks),
    ]
    for name, config, at in located:
        least, most = (config.get(key, "") for key in ("min.compaction.lag.ms", "max.compaction.lag.ms"))
        if least.strip().isdecimal() and most.strip().isdecimal() and int(least) > int(most):
            yield messages.lags_conflict(name, least, most, at)


_COMPUTED = {
    "retention.ms": (ChangelogKind.WINDOWED, ChangelogKind.WINDOWED_DUPLICATES),
    "min.compaction.lag.ms": (ChangelogKind.VERSIONED,),
}


def processor_problems(document: TopologyDocument, compilation: Compilation) -> Iterator[Problem]:
    """Yield what prevents a fixed number of processors; nothing if the document declares none.

    A topology with errors is not complete: whether it has state is then not known.
    """
    application = compilation.application
    yield from _other_linear_hash(application, compilation.config.linear_initial)
    if application.processors is None:
        return
    if document.described is not None:
        yield messages.not_executable(application, "the text of Topology#describe()")
        return
    if document.exported is not None:
        yield messages.not_executable(application, "an exported topology")
        return
    if compilation.config.guarantee is not Guarantee.EXACTLY_ONCE_V2:
        yield messages.not_exactly_once(application, compilation.config.guarantee)
    stateful = [group for group in compilation.groups if group.stores and not group.is_global]
    for group in stateful:
        yield from _store_problems(group, compilation)
        yield from _partitioner_problems(group, compilation)
    if not stateful and not errors(compilation.topology.problems):
        yield messages.without_state(application)


def _other_linear_hash(application: Application, initial: int | None) -> Iterator[Problem]:
    """Yield a problem if `linear-hash` is set without processors, or with fewer than the initial number.

    The runtime reports a number of the partitioner that is missing or no number.
    """
    if initial is None or initial <= (application.processors or 0):
        return
    yield Problem(
        code=ProblemCode.INVALID_PROCESSORS,
        summary=f"`{LINEAR_HASH}` is not set for the processors of {application.id}.",
        application=application.id,
        expected=f"at least `processors: {initial}`, as `{INITIAL_PARTITIONS}`",
        found=f"`processors: {application.processors or 'follow'}`",
        why=f"With {LINEAR_HASH}, keys move to added partitions. Their state is found there only if the "
        "partition belongs to the same processor.",
        fix=f"Set `processors: {initial}`, or choose `initial-hash` as `static.partitioner.class`.",
        location=application.at,
    )


def _store_problems(group: TopicGroup, compilation: Compilation) -> Iterator[Problem]:
    logged = {store.name for store in group.changelogs.values()}
    stores = {store.name: store for store in compilation.topology.stores}
    for name in group.stores:
        store = stores.get(name)
        if store is None or store.is_global:
            continue
        if store.changelog_topic is not None:
            yield messages.restored_from_source(store, store.changelog_topic)
        elif name not in logged:
            yield messages.unlogged_store(store)


def _partitioner_problems(group: TopicGroup, compilation: Compilation) -> Iterator[Problem]:
    """Yield repartition topics whose partitioner is a user's class: where it sends a key is not known."""
    for node in compilation.topology.nodes:
        if not isinstance(node, SinkNode) or node.topic is None or node.writes is None:
            continue
        topic, partitioner = compilation.naming.topic(node.topic), node.writes.partitioner
        if topic in group.repartition and partitioner is not None and ":" in partitioner:
            yield Problem(
                code=ProblemCode.INVALID_PROCESSORS,
                summary=f"Repartition topic {topic} has a partitioner of its own, so the sub-topology that "
                "reads it cannot have a number of processors.",
                topic=topic,
                node=node.name,
                expected="the default partitioner, or a static one for the whole application",
                found=partitioner,
                why="It is not known to which partition the class sends a key after partitions were added: "
                "the key may move away from its state.",
                fix="Remove `partitioner` of the operator. If keys never move to another partition, set "
                "the class as `static.partitioner.class` of the application.",
                location=node.at,
            )
