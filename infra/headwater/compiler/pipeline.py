"""Compiles a document to a `CompiledApplication` by a tuple of passes over one frozen value."""

from collections.abc import Callable, Iterable, Mapping

import attrs

from headwater.compiler.checks import (
    check_computed_settings,
    check_names,
    check_read_only_stores,
    check_retention,
    check_stores,
    compaction_lag_problems,
    processor_problems,
)
from headwater.compiler.cluster_profiles import profile_problems, with_accepted_settings
from headwater.compiler.compilation import Compilation
from headwater.compiler.counting import count_partitions, resolve_copartitioning, resolve_topics
from headwater.compiler.described import complete_topology
from headwater.compiler.dsl import build_dsl
from headwater.compiler.internal_topics import build_subtopologies, internal_topics
from headwater.compiler.messages import unwritten_sink
from headwater.compiler.observed import compile_observed, open_questions
from headwater.compiler.partitioned_sinks import partitioned_sinks, static_partitioning_problems
from headwater.compiler.source_problems import check_sources, missing_topics, with_locations
from headwater.compiler.streams_config import REUSE_SOURCE_TOPICS, StreamsConfig, streams_config_problems
from headwater.compiler.topic_groups import Naming
from headwater.model.compiled import CompiledApplication, PartitionedSink
from headwater.model.nodes import NodeTopology, SinkNode
from headwater.model.problems import PLAN, Caller, Problem
from headwater.model.topology import Sink, TopologyDocument


def _sink_counts(
    sinks: Iterable[Sink], compilation: Compilation
) -> tuple[tuple[Sink, ...], tuple[Problem, ...]]:
    """Return `sinks` with their counts (None = undecided), and a problem for each without a writer."""
    sized: list[Sink] = []
    problems: list[Problem] = []
    for sink in sinks:
        if sink.partitions is not None:
            sized.append(sink)
            continue
        writers = [group.id for group in compilation.groups if sink.topic in group.sinks]
        if not writers:
            problems.append(unwritten_sink(sink))
        tasks = [compilation.tasks.get(writer) for writer in writers]
        decided = [count for count in tasks if count is not None]
        sized.append(
            attrs.evolve(sink, partitions=max(decided) if decided and len(decided) == len(tasks) else None)
        )
    return tuple(sized), tuple(problems)


PASSES: tuple[Callable[[Compilation], Compilation], ...] = (
    resolve_topics,
    resolve_copartitioning,
    count_partitions,
    check_sources,
    check_names,
    check_stores,
    check_read_only_stores,
    check_retention,
    check_computed_settings,
)
"""The passes in order; each uses the results of those before it. All problems are collected."""


def build_nodes(document: TopologyDocument) -> NodeTopology:
    """Return the node topology of a document: exported, built from calls, or completed from a described text.

    The topology of an observed application is empty; its problems are the open questions. Never raises for an
    invalid topology: see `NodeTopology.problems`.
    """
    if document.observed is not None:
        return NodeTopology((), problems=tuple(open_questions(document.application, document.observed)))
    if document.exported is not None:
        return document.exported.nodes
    config = StreamsConfig.from_application(document.application)
    if document.described is not None:
        return complete_topology(
            document.described, config.version, reuses_sources=REUSE_SOURCE_TOPICS in config.optimizations
        )
    return build_dsl(document, config)


def compile_nodes(
    document: TopologyDocument,
    topology: NodeTopology,
    partitions: Mapping[str, int],
    *,
    following: frozenset[str] = frozenset(),
    caller: Caller = PLAN,
) -> CompiledApplication:
    """Run the passes over the node topology of `document`; `partitions`: topic → count on the cluster.

    A missing source is no problem if it is in `following`, the managed sink topics of all documents that
    follow their writers.
    """
    if document.observed is not None:
        return compile_observed(document, partitions, following=following, caller=caller)
    application = document.application
    config = StreamsConfig.from_application(application)
    compilation = Compilation(
        application=application,
        config=config,
        topology=topology,
        naming=Naming.from_topology(topology, config.topic_prefix or application.id),
        partitions=partitions,
        following=following,
        caller=caller,
        form=document.form,
        problems=(*streams_config_problems(application), *topology.problems),
    )
    for run in PASSES:
        compilation = run(compilation)
    sinks, sink_problems = _sink_counts(document.sinks, compilation)
    sinks = with_accepted_settings(sinks, application)
    topics = internal_topics(compilation)
    own_partitions = _own_partitions(document, compilation)
    compilation = compilation.with_problems(
        (
            *sink_problems,
            *compaction_lag_problems(topics, sinks),
            *profile_problems(application, topics, sinks, document.form),
            *processor_problems(document, compilation),
            *static_partitioning_problems(application, config, own_partitions),
        )
    )
    return attrs.evolve(
        _compiled_application(compilation),
        internal_topics=topics,
        sinks=sinks,
        partitioned_sinks=own_partitions,
        described=topology if document.described is not None or document.exported is not None else None,
        document=document,
    )


def _own_partitions(
    document: TopologyDocument, compilation: Compilation
) -> tuple[PartitionedSink, ...] | None:
    """Return the sinks that choose partitions themselves; None: a described text does not show them."""
    if document.described is not None:
        return None
    declared = document.exported.partitioners if document.exported is not None else {}
    return partitioned_sinks(compilation.topology, declared, compilation.naming)


def _compiled_application(compilation: Compilation) -> CompiledApplication:
    """Return what follows from the passes alone."""
    external = {
        topic for group in compilation.topic_graph.groups for topic in group.sources
    } - compilation.repartition.keys()
    return CompiledApplication(
        application=compilation.application,
        subtopologies=build_subtopologies(compilation),
        internal_topics=(),
        external_sources=tuple(sorted(external)),
        missing_sources=missing_topics(compilation),
        source_patterns=tuple(pattern for group in compilation.groups for pattern in group.patterns),
        global_topics=tuple(
            sorted({topic for group in compilation.groups if group.is_global for topic in group.sources})
        ),
        copartition_groups=tuple(sorted(tuple(sorted(group)) for group in compilation.copartitioned)),
        problems=with_locations(compilation.problems, compilation),
        extractor_sinks=tuple(
            node.name
            for node in compilation.topology.nodes
            if isinstance(node, SinkNode) and node.topic is None
        ),
    )
