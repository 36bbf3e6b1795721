"""Survey a cluster for undeclared applications: its topics by their names, and all its groups."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from headwater.kafka.connection import Connection
from headwater.kafka.evidence import group_facts, read_streams_groups, streams_facts
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.kafka_reader import KafkaClusterReader
from headwater.kafka.pending_snapshot import successes
from headwater.kafka.reader import SnapshotRequest
from headwater.model.problems import Problem, ProblemsError
from headwater.model.survey import Survey


def survey(
    connection: Connection, patterns: Sequence[str], named: Sequence[str] = (), timeout_seconds: float = 15.0
) -> Survey:
    """Return all topics, with settings where names match `patterns` (Python `re`), and all groups.

    Requests offsets only of groups whose id is the beginning of such a topic name. `named` are groups that
    must be visible if they exist.

    Raises:
        ProblemsError: ClusterUnreachable, AuthenticationRefused, NotAuthorized.
    """
    request = SnapshotRequest(patterns=tuple(patterns), groups=tuple(named), with_ids=False)
    snapshot = KafkaClusterReader(connection, timeout_seconds).read(request)
    admin = GroupAdmin(connection, timeout_seconds)
    groups = {group.id: group_facts(group) for group in admin.listed_groups()}
    streams_groups = read_streams_groups(admin, groups, with_nodes=True)
    groups |= {id_: streams_facts(groups[id_], group) for id_, group in streams_groups.items()}
    asked = sorted(groups.keys() & set(_beginnings(snapshot.described)))
    denied: list[Problem] = []
    committed = admin.committed_topics(asked).items()
    for id_, topics in successes(committed, "read the offsets of consumer group", denied):
        groups[id_] = attrs.evolve(groups[id_], committed=topics)
    if denied:
        raise ProblemsError(denied)
    return Survey(snapshot.cluster_id, snapshot.topics, groups, streams_groups)


def _beginnings(names: Iterable[str]) -> Iterator[str]:
    """Yield each part of a name that ends before a hyphen."""
    for name in names:
        yield from (name[:index] for index, character in enumerate(name) if character == "-" and index)
