"""Read the cluster that a command line names, and check documents against policies without a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from headwater.compiler import compile_documents
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Lifecycle, TopologyDocument

if TYPE_CHECKING:
    from headwater.model.cluster import ClusterSnapshot

NEED_A_CLUSTER = frozenset({ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS})
"""Problems of documents that are compiled without the partition counts of a cluster."""


def read_counts(documents: Sequence[TopologyDocument], cluster: NamedCluster) -> Mapping[str, int]:
    """Return topic → partition count for the documents, empty if the command line names no cluster.

    Raises `ProblemsError` as `read_named_cluster` does.
    """
    snapshot = read_named_cluster(documents, cluster)
    return {} if snapshot is None else snapshot.partitions


def read_named_cluster(
    documents: Sequence[TopologyDocument], cluster: NamedCluster
) -> "ClusterSnapshot | None":
    """Return a snapshot for the documents, None if no option names a cluster; raises `ProblemsError`."""
    connection = cluster.named_connection()
    return read_snapshot(documents, connection) if connection else None


def read_snapshot(
    documents: Sequence[TopologyDocument], connection: Connection, *, protocol_is_known: bool = True
) -> "ClusterSnapshot":
    """Return a snapshot of the topics and groups of the documents; raises `ProblemsError`.

    Without `protocol_is_known`, groups are also searched among groups of the streams protocol.
    """
    from headwater.kafka import KafkaClusterReader, snapshot_request  # noqa: PLC0415 - only for a cluster

    request = snapshot_request(documents, {})
    if not protocol_is_known:
        request = attrs.evolve(request, streams_groups=frozenset(request.groups))
    return KafkaClusterReader(connection).read(request)


def find_violations(
    documents: Sequence[TopologyDocument],
    compiled: Sequence[CompiledApplication],
    partitions: Mapping[str, int],
    policies: Sequence[Policy],
) -> Iterator[Problem]:
    """Yield the violations that can be found without a cluster.

    If the counts of source topics are not known, only names and settings of internal topics are checked.
    """
    if not policies:
        return
    from headwater.planner.policies import check_application, declared_subject  # noqa: PLC0415 - only for policies

    assumed = {name: 1 for each in compiled for name in each.missing_sources} | dict(partitions)
    with_assumed = compile_documents(documents, assumed)
    for own, other in zip(compiled, with_assumed, strict=True):
        if own.application.lifecycle is not Lifecycle.RELEASED:
            is_counted = not own.missing_sources
            subject = declared_subject(own if is_counted else other, counts_are_known=is_counted)
            yield from check_application(subject, policies)


def with_problems(
    compiled: Sequence[CompiledApplication], problems: Sequence[Problem]
) -> tuple[CompiledApplication, ...]:
    """Return the applications, each with its problems of `problems` added."""
    return tuple(
        attrs.evolve(
            each,
            problems=(*each.problems, *(p for p in problems if p.application == each.application.id)),
        )
        for each in compiled
    )
