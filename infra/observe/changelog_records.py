"""How many records the changelog topics have that an expansion of processors has to read (KIP-287)."""

from collections.abc import Iterable, Mapping

import attrs

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import ProblemsError
from infra.model.topology import Lifecycle
from infra.observe.reader import ClusterReader


def with_changelog_records(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> ClusterSnapshot:
    """Return `snapshot` with the numbers of records that expansions of processors would read.

    Sends requests only for topics with fewer partitions than processors are declared. The numbers are for an
    estimate, so they are omitted if the brokers do not answer or do not allow it.
    """
    if not (narrow := _narrow_changelogs(snapshot, compiled)):
        return snapshot
    try:
        found = reader.record_counts(narrow)
    except ProblemsError:
        return snapshot
    counted = {name: attrs.evolve(snapshot.topics[name], records=count) for name, count in found.items()}
    return attrs.evolve(snapshot, topics={**snapshot.topics, **counted})


def _narrow_changelogs(
    snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> Mapping[str, int]:
    """Return the changelog topics with fewer partitions than declared processors, and their counts."""
    declared = {
        name: part.processors
        for application in compiled
        if application.application.lifecycle is Lifecycle.ACTIVE
        for part in application.subtopologies
        if part.processors is not None
        for name in part.changelog_topics
    }
    return {
        name: snapshot.topics[name].partitions
        for name, processors in sorted(declared.items())
        if name in snapshot.topics and snapshot.topics[name].partitions < processors
    }
