"""Compiles several applications together: a managed sink of one may be a source of another or of itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from headwater.compiler.pipeline import build_nodes, compile_nodes
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import PLAN, Caller, Problem, ProblemCode
from headwater.model.topology import TopologyDocument


def compile_document(
    document: TopologyDocument, partitions: Mapping[str, int], caller: Caller = PLAN
) -> CompiledApplication:
    """Return the compiled application of one document.

    `partitions`: topic → partition count on the cluster. `caller` decides the wording of problems. Never
    raises for a topology that Kafka Streams rejects: see `CompiledApplication.problems`.
    """
    return compile_documents([document], partitions, caller)[0]


def compile_documents(
    documents: Iterable[TopologyDocument], partitions: Mapping[str, int], caller: Caller = PLAN
) -> tuple[CompiledApplication, ...]:
    """Return the compiled applications of `documents`, in the same order.

    `partitions`: topic → partition count on the cluster. A source topic that is a managed sink of one of the
    documents has the count that this sink gets. Documents are compiled again until no count changes. A sink
    whose count depends on itself is a FOLLOW_CYCLE problem. Never raises, as `compile_document`.
    """
    documents = tuple(documents)
    topologies = [build_nodes(document) for document in documents]
    owners = {sink.topic: index for index, document in enumerate(documents) for sink in document.sinks}
    following = frozenset(
        sink.topic for document in documents for sink in document.sinks if sink.partitions is None
    )
    known = {topic: count for topic, count in partitions.items() if topic not in following}
    for document in documents:
        for sink in document.sinks:
            if sink.partitions is not None:
                known[sink.topic] = max(sink.partitions, partitions.get(sink.topic, 0))

    def compile_(index: int) -> CompiledApplication:
        return compile_nodes(documents[index], topologies[index], known, following=following, caller=caller)

    compiled = _until_stable(documents, compile_, known, partitions)
    unsized = {topic for topic in following if _count_of(compiled[owners[topic]], topic) is None}
    return tuple(_with_unsized(application, unsized, owners, compiled) for application in compiled)


def _until_stable(
    documents: Sequence[TopologyDocument],
    compile_: Callable[[int], CompiledApplication],
    known: dict[str, int],
    partitions: Mapping[str, int],
) -> list[CompiledApplication]:
    """Compile, add counts of following sinks to `known`, compile their readers again, a sink a round."""
    stale = set(range(len(documents)))
    compiled: dict[int, CompiledApplication] = {}
    rounds = 1 + 2 * sum(len(document.sinks) for document in documents)
    while stale and rounds:
        rounds -= 1
        for index in sorted(stale):
            compiled[index] = compile_(index)
        learned = {
            sink.topic: max(sink.partitions, partitions.get(sink.topic, 0))
            for index in stale
            for sink in compiled[index].sinks
            if sink.partitions is not None
        }
        changed = {topic for topic, count in learned.items() if known.get(topic) != count}
        known |= learned
        stale = {index for index, application in compiled.items() if _reads_any(application, changed)}
    return [compiled[index] for index in range(len(documents))]


def _reads_any(application: CompiledApplication, topics: set[str]) -> bool:
    read = {*application.external_sources, *application.global_topics}
    return bool(topics) and (bool(application.source_patterns) or not topics.isdisjoint(read))


def _count_of(application: CompiledApplication, topic: str) -> int | None:
    return next((sink.partitions for sink in application.sinks if sink.topic == topic), None)


def _with_unsized(
    application: CompiledApplication,
    unsized: set[str],
    owners: Mapping[str, int],
    compiled: Sequence[CompiledApplication],
) -> CompiledApplication:
    """Add why sources that an application of the run will create have no count. They are not missing."""
    problems = tuple(
        _unsized_sink(topic, application, owners, compiled, unsized)
        for topic in application.missing_sources
        if topic in unsized
    )
    return attrs.evolve(application, problems=(*application.problems, *problems)) if problems else application


def _unsized_sink(
    topic: str,
    application: CompiledApplication,
    owners: Mapping[str, int],
    compiled: Sequence[CompiledApplication],
    unsized: set[str],
) -> Problem:
    path = _find_cycle(topic, owners, compiled, unsized)
    owner = compiled[owners[topic]].application.id
    if path:
        return Problem(
            code=ProblemCode.FOLLOW_CYCLE,
            summary=f"The partition count of {topic} follows itself: {' → '.join(path)}.",
            application=application.application.id,
            location=application.application.at,
            topic=topic,
            expected="a managed sink topic whose count follows another topic",
            found=" → ".join(path),
            why="A topic that takes its count from a sub-topology that reads it, directly or through "
            "other topics, has no initial count.",
            fix="Declare the partitions of one managed sink topic in the cycle as a number.",
        )
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"Source topic {topic} is a managed sink of {owner}, whose partition count is not decided.",
        application=application.application.id,
        location=application.application.at,
        topic=topic,
        expected=f"a decided count of {topic}",
        found="no count",
        why="Applications that read the topic cannot be compiled before its count is known.",
        fix=f"Fix the problems of {owner} first.",
    )


def _find_cycle(
    topic: str, owners: Mapping[str, int], compiled: Sequence[CompiledApplication], unsized: set[str]
) -> list[str]:
    """Return the path from `topic` through sources of its writers back to itself, empty if there is none."""
    reached_from: dict[str, str] = {}
    frontier = [topic]
    while frontier:
        current = frontier.pop()
        for needed in _needed_sources(current, compiled[owners[current]]) & unsized:
            if needed == topic:
                return _build_path(topic, current, reached_from)
            if needed not in reached_from:
                reached_from[needed] = current
                frontier.append(needed)
    return []


def _build_path(topic: str, last: str, reached_from: Mapping[str, str]) -> list[str]:
    path = [topic, last] if last != topic else [topic]
    while path[-1] != topic:
        path.append(reached_from[path[-1]])
    return path if len(path) > 1 else [topic, topic]


def _needed_sources(topic: str, application: CompiledApplication) -> set[str]:
    """Return all sources that decide the count of `topic`, directly or through repartition topics."""
    found: set[str] = set()
    pending = [topic]
    while pending:
        current = pending.pop()
        for part in application.subtopologies:
            if current in part.sinks:
                new = set(part.sources) - found
                found |= new
                pending += [source for source in new if source in part.repartition_topics]
    return found
