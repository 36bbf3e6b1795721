"""The passes that find topics and decide their counts as the group leader's assignor or the broker does."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import attrs

from headwater.compiler.assignor_counts import (
    TopicGraph,
    assignor_order,
    count_by_assignor,
    count_in_dependency_order,
)
from headwater.compiler.broker_counts import (
    broker_order,
    client_errors,
    count_by_broker,
    explicit_counts_conflict,
    undersized_source_changelogs,
)
from headwater.compiler.compilation import Compilation, tasks_of
from headwater.compiler.copartitioning import (
    EnforcedCounts,
    check_explicit_counts,
    copartition_groups,
    enforce_counts,
    find_unchecked,
)
from headwater.compiler.topic_groups import TopicGroup, node_groups, resolve_sources, topic_groups
from headwater.model.problems import Problem, ProblemCode, Severity, first_names
from headwater.model.topology import DocumentForm, Protocol

_MOST_ORDERS_TRIED = 16
_MOST_TOPICS_TRIED = 20_000
_MOST_NAMES = 5


def resolve_topics(compilation: Compilation) -> Compilation:
    """Add the sub-topologies with the full names of their topics and stores."""
    topology, naming = compilation.topology, compilation.naming
    sources = resolve_sources(topology, naming, compilation.partitions)
    groups = topic_groups(topology, node_groups(topology), sources, naming)
    return attrs.evolve(compilation, sources=sources, groups=groups).with_problems(sources.problems)


def resolve_copartitioning(compilation: Compilation) -> Compilation:
    """Add the co-partition groups of topics, and the problems that need no counts."""
    topology = compilation.topology
    problems = check_explicit_counts(topology, compilation.naming)
    groups = copartition_groups(topology, compilation.sources)
    return attrs.evolve(compilation, copartitioned=groups).with_problems(problems)


def count_partitions(compilation: Compilation) -> Compilation:
    """Decide the counts of repartition topics and the number of tasks of each sub-topology.

    With a missing source topic Kafka Streams decides nothing; counts that do not depend on it are still
    decided here.
    """
    topic_graph = TopicGraph.from_groups(
        compilation.groups, compilation.partitions, compilation.copartitioned
    )
    compilation = attrs.evolve(compilation, topic_graph=topic_graph)
    if compilation.application.protocol is Protocol.STREAMS:
        enforced = _by_broker(compilation)
    else:
        enforced = _by_assignor(compilation)
    tasks = tasks_of(topic_graph.groups, enforced.counts)
    return attrs.evolve(compilation, counts=enforced.counts, tasks=tasks).with_problems(enforced.problems)


def _by_assignor(compilation: Compilation) -> EnforcedCounts:
    topic_graph = compilation.topic_graph
    if topic_graph.missing:
        return enforce_counts(
            compilation.copartitioned, count_in_dependency_order(topic_graph), compilation.repartition
        )
    if not topic_graph.writers:
        not_checked = find_unchecked(compilation.copartitioned, topic_graph.known)
        return EnforcedCounts(topic_graph.known, not_checked)
    order = assignor_order(topic_graph.groups)
    enforced = _in_order(compilation, order)
    others = [_in_order(compilation, other).counts for other in _other_orders(topic_graph)]
    if not others:
        return enforced
    others = [_in_dependency_order(compilation), *others]
    return attrs.evolve(
        enforced,
        problems=(*enforced.problems, *_depends_on_application_id(compilation, enforced.counts, others)),
    )


def _in_dependency_order(compilation: Compilation) -> Mapping[str, int]:
    """Return the counts if each topic waits for its inputs, without topics that are undecided then.

    In a cycle, as the topics of a foreign-key join are, no topic is decided: what is co-partitioned with one
    gets its count there, and is left out, too.
    """
    counts = enforce_counts(
        compilation.copartitioned, count_in_dependency_order(compilation.topic_graph), compilation.repartition
    ).counts
    uncertain = {
        topic for group in compilation.copartitioned if not group <= counts.keys() for topic in group
    }
    return {topic: count for topic, count in counts.items() if topic not in uncertain}


def _in_order(compilation: Compilation, order: Sequence[TopicGroup]) -> EnforcedCounts:
    return enforce_counts(
        compilation.copartitioned, count_by_assignor(compilation.topic_graph, order), compilation.repartition
    )


def _other_orders(topic_graph: TopicGraph) -> list[tuple[TopicGroup, ...]]:
    """Return orders of the sub-topologies that other application ids may give; empty if counts cannot differ.

    The order matters only for a topic whose writers read both an undecided topic and another topic.
    """
    undecided = topic_graph.writers.keys() - topic_graph.known.keys()
    read = {group.id: len(group.sources) for group in topic_graph.groups}
    waits = {group.id: not undecided.isdisjoint(group.sources) for group in topic_graph.groups}
    writers = [topic_graph.writers[topic] for topic in undecided]
    if not any(sum(read[one] for one in ids) > 1 and any(waits[one] for one in ids) for ids in writers):
        return []
    tries = max(1, min(_MOST_ORDERS_TRIED, _MOST_TOPICS_TRIED // len(topic_graph.readers)))
    return [
        topic_graph.groups,
        topic_graph.groups[::-1],
        *(_shuffle_groups(topic_graph.groups, step) for step in range(1, tries)),
    ]


def _shuffle_groups(groups: Sequence[TopicGroup], step: int) -> tuple[TopicGroup, ...]:
    """Return a permutation of `groups` that depends only on `step`."""
    return tuple(sorted(groups, key=lambda group: (group.id * 7919 * step) % 104_729))


def _depends_on_application_id(
    compilation: Compilation, made: Mapping[str, int], others: Sequence[Mapping[str, int]]
) -> tuple[Problem, ...]:
    problems = []
    inputs = cache(lambda: _inputs_by_reader(compilation, made))
    for topic, details in compilation.repartition.items():
        if topic not in made:
            continue
        counts = sorted({other[topic] for other in others if topic in other} | {made[topic]})
        if len(counts) > 1:
            alternatives = " or ".join(map(str, counts))
            problems.append(
                Problem(
                    code=ProblemCode.PARTITIONS_DEPEND_ON_APPLICATION_ID,
                    summary=f"{topic} gets {alternatives} partitions depending on the application id; with "
                    f"{compilation.application.id} Kafka Streams makes {made[topic]}.",
                    topic=topic,
                    expected=(
                        f"{others[0].get(topic, max(counts))}, the count if all inputs are counted first"
                    ),
                    found=f"{made[topic]} with this application id",
                    why="The sub-topology that writes it reads several topics, and Kafka Streams "
                    "iterates over the sub-topologies in an order that depends on a hash of the "
                    "application id. Renaming the "
                    "application changes the count.",
                    fix=_explicit_count_fix(compilation, topic, made, inputs()),
                    location=details.at,
                    severity=Severity.WARNING,
                )
            )
    return tuple(problems)


@attrs.frozen
class _Inputs:
    """What a sub-topology reads: repartition topics that a call can count, and the largest count of all."""

    repartition: frozenset[str]
    largest: int


def _inputs_by_reader(compilation: Compilation, made: Mapping[str, int]) -> Mapping[int, _Inputs]:
    """Return sub-topology → what it reads."""
    graph, repartition = compilation.topic_graph, compilation.repartition
    topics: dict[int, set[str]] = defaultdict(set)
    largest: dict[int, int] = defaultdict(int)
    for topic, readers in graph.readers.items():
        is_set = topic in graph.writers and topic not in graph.known and not repartition[topic].is_foreign_key
        for reader in readers if topic in made else ():
            largest[reader] = max(largest[reader], made[topic])
            if is_set:
                topics[reader].add(topic)
    return {reader: _Inputs(frozenset(topics[reader]), count) for reader, count in largest.items()}


def _explicit_count_fix(
    compilation: Compilation, topic: str, made: Mapping[str, int], inputs_of: Mapping[int, _Inputs]
) -> str:
    """Return how the count stays the same; a table has no `repartition`, so there its inputs get one.

    The inputs keep their own counts: another one can differ from topics that they are co-partitioned with.
    """
    read = [inputs_of[writer] for writer in compilation.topic_graph.writers[topic] if writer in inputs_of]
    inputs = sorted(frozenset().union(*(each.repartition for each in read)))
    of_table = " A table that is grouped has no `repartition`: then give the source topics equal counts."
    if inputs:
        counts = [f"{each}={made[each]}" for each in inputs]
        of_table = (
            " A table that is grouped, or joined by a foreign key, has no `repartition`: then set "
            f"`partitions` of its inputs, {first_names(counts, _MOST_NAMES)}."
        )
        if (count := max(each.largest for each in read)) != made[topic]:
            of_table += f" The topic then gets {count} partitions: do this before it is created."
    return (
        f"Set `partitions: {made[topic]}` of the `repartition` that writes it. If there is none, call "
        "`repartition` with this count before the operation, after the key is changed."
        f"{of_table}{_AFTER[compilation.form]}"
    )


_AFTER = {
    DocumentForm.DESCRIBED: " Then print the text again, and declare the count below "
    "`describe.repartitions`.",
    DocumentForm.EXPORTED: " Then export the document again.",
    DocumentForm.CALLS: "",
    DocumentForm.OBSERVED: "",
}
"""What to do with the document after the code was changed."""


def _by_broker(compilation: Compilation) -> EnforcedCounts:
    topic_graph = compilation.topic_graph
    rejected = client_errors(compilation.topology, topic_graph.groups, compilation.copartitioned)
    explicit_count, conflict = explicit_counts_conflict(compilation.copartitioned, topic_graph)
    order = broker_order(topic_graph.groups)
    counts = (
        count_in_dependency_order(topic_graph) if topic_graph.missing else count_by_broker(topic_graph, order)
    )
    enforced = enforce_counts(
        compilation.copartitioned,
        counts,
        compilation.repartition,
        explicit_count=explicit_count,
        by_broker=True,
    )
    undersized = undersized_source_changelogs(
        topic_graph.groups, enforced.counts, tasks_of(topic_graph.groups, enforced.counts)
    )
    return EnforcedCounts(enforced.counts, (*rejected, *conflict, *enforced.problems, *undersized))
