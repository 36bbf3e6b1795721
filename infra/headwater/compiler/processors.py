"""Check whether an application can have a fixed number of processors (`application.processors`, KIP-287)."""

from collections.abc import Iterator

from headwater.compiler.compilation import Compilation
from headwater.compiler.messages import (
    not_exactly_once,
    not_executable,
    restored_from_source,
    unlogged_store,
    without_state,
)
from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH, Guarantee
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.nodes import SinkNode
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.topology import Application, TopologyDocument


def processor_problems(document: TopologyDocument, compilation: Compilation) -> Iterator[Problem]:
    """Yield what prevents a fixed number of processors; nothing if the document declares none.

    A topology with errors is not complete: whether it has state is then not known.
    """
    application = compilation.application
    yield from _other_linear_hash(application, compilation.config.linear_initial)
    if application.processors is None:
        return
    if document.described is not None:
        yield not_executable(application, "the text of Topology#describe()")
        return
    if document.exported is not None:
        yield not_executable(application, "an exported topology")
        return
    if compilation.config.guarantee is not Guarantee.EXACTLY_ONCE_V2:
        yield not_exactly_once(application, compilation.config.guarantee)
    stateful = [group for group in compilation.groups if group.stores and not group.is_global]
    for group in stateful:
        yield from _store_problems(group, compilation)
        yield from _partitioner_problems(group, compilation)
    if not stateful and not errors(compilation.topology.problems):
        yield without_state(application)


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
            yield restored_from_source(store, store.changelog_topic)
        elif name not in logged:
            yield unlogged_store(store)


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
