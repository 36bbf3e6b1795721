"""How many processors the state of an application has when it starts, and whether more are being added."""

from collections.abc import Mapping

import attrs

from infra.compiler.streams_config import INITIAL_PARTITIONS, StreamsConfig
from infra.model.compiled import CompiledApplication
from infra.model.linear_hashing import round_start
from infra.model.topology import TopologyDocument
from spark_jobs.runtime.engine.scaling.marks import MoveMark


def changelog_counts(compiled: CompiledApplication, counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return changelog topic → partition count, of those with a partition for each processor that exist."""
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    return {
        topic: counts[topic] for part in parts for topic in sorted(part.changelog_topics) if topic in counts
    }


def input_counts(compiled: CompiledApplication, counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return input topic → partition count, of those that processors read and that exist."""
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    return {topic: counts[topic] for part in parts for topic in sorted(part.sources) if topic in counts}


def present_processors(declared: int, changelogs: Mapping[str, int], announced: MoveMark | None) -> int:
    """Return the number of processors of the state.

    Some may have been added since the document was written. Other numbers are left to the planner, which
    refuses them.

    Args:
        declared: The number in the document.
        changelogs: Changelog topic → partition count.
        announced: The mark of an expansion that has begun: the partitions of added processors are not
            complete.
    """
    if announced is not None:
        return announced.before
    found = set(changelogs.values())
    if len(found) == 1 and (count := found.pop()) >= declared:
        return count
    return declared


def with_processors(
    document: TopologyDocument, processors: int, initial: int | None = None
) -> TopologyDocument:
    """Return a document that declares this number of processors: no key moves to another partition.

    `initial` is the initial number, or one that it was doubled to; None = as before.
    """
    application = document.application
    config = dict(application.config)
    linear = StreamsConfig.of(application).linear_initial
    if linear is not None and linear > processors:
        config[INITIAL_PARTITIONS] = str(round_start(linear, processors) or linear)
    changed = attrs.evolve(
        application,
        processors=processors,
        initial_processors=application.initial_processors if initial is None else initial,
        config=config,
    )
    return attrs.evolve(document, application=changed)
