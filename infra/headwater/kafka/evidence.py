"""Read who uses topics whose owner is in question: all consumer groups, their offsets, ownership records.

A plan on a cluster where no owner is in question sends none of these requests.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.group_admin import GroupAdmin, ListedGroup
from headwater.kafka.kafka_errors import is_denial, unexpected_error
from headwater.kafka.reader import ClusterReader, GroupsRead
from headwater.model.acls import Operation
from headwater.model.cluster import (
    ClusterEvidence,
    ClusterSnapshot,
    EvidenceRequest,
    EvidenceSource,
    GroupFacts,
    GroupType,
    UnreadCause,
    UnreadEvidence,
)
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord
from headwater.model.streams_groups import StreamsGroup
from headwater.model.untrusted import UnreadRecord

_DENIED_GROUPS = UnreadEvidence(
    source=EvidenceSource.GROUPS,
    cause=UnreadCause.NO_PERMISSION,
    permission=f"permission {Operation.DESCRIBE} on group *",
)
_GROUPS_OF_STOPPED_BROKERS = UnreadEvidence(source=EvidenceSource.GROUPS, cause=UnreadCause.NO_COORDINATOR)
_NO_SUCH_GROUP = (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.INVALID_GROUP_ID)
"""The group ended since it was listed, or is of a type that has no committed offsets."""


def with_evidence(
    reader: ClusterReader, snapshot: ClusterSnapshot, request: EvidenceRequest
) -> ClusterSnapshot:
    """Return `snapshot` with what shows who owns and uses the topics of `request`; without topics, as it is.

    What could not be read is in `unread`. Raises `ProblemsError` (ClusterUnreachable, RequestNotAnswered).
    """
    if not request.topics:
        return snapshot
    groups, unread = reader.group_facts(request.offsets_of)
    ownership, unread_records = _read_ownership(reader, snapshot, is_requested=request.with_ownership)
    policy = ""
    if request.with_ownership_policy and ownership:
        policy = reader.cleanup_policy(OWNERSHIP_TOPIC)
    evidence = ClusterEvidence(
        groups=groups,
        ownership=ownership,
        ownership_policy=policy,
        unread=(*unread, *unread_records),
    )
    return attrs.evolve(snapshot, evidence=evidence)


def read_group_facts(admin: GroupAdmin, offsets_of: frozenset[str] | None) -> GroupsRead:
    """Return group id → facts of all groups, and what could not be read.

    A list of groups from each broker, their descriptions, and the committed offsets of the groups
    `offsets_of`, batched for each coordinator. None = of all groups: then it matters whether the user may
    see all of them.
    """
    groups = {group.id: group_facts(group) for group in admin.listed_groups()}
    unread = [] if admin.has_all_coordinators else [_GROUPS_OF_STOPPED_BROKERS]
    if offsets_of is None and not unread and not _sees_all_groups(admin):
        unread.append(_DENIED_GROUPS)
    consumers = sorted(id_ for id_, group in groups.items() if group.type is GroupType.CONSUMER)
    groups |= {
        id_: streams_facts(groups[id_], group) for id_, group in read_streams_groups(admin, groups).items()
    }
    for id_, described in admin.groups(consumers).items() if consumers else ():
        if isinstance(described, KafkaError):
            unread += _unread_group(id_, described)
            continue
        topics = (member.subscribed | member.assigned for member in described.members)
        groups[id_] = attrs.evolve(
            groups[id_], members=len(described.members), subscribed=frozenset().union(*topics)
        )
    asked = sorted(groups if offsets_of is None else groups.keys() & offsets_of)
    for id_, committed in admin.committed_topics(asked).items():
        if isinstance(committed, KafkaError):
            unread += _unread_group(id_, committed)
            continue
        groups[id_] = attrs.evolve(groups[id_], committed=committed)
    return groups, unread


def read_streams_groups(
    admin: GroupAdmin, groups: Mapping[str, GroupFacts], *, with_nodes: bool = False
) -> Mapping[str, StreamsGroup]:
    """Return the groups of the streams protocol among `groups` that the user may describe completely."""
    ids = sorted(id_ for id_, group in groups.items() if group.type is GroupType.STREAMS)
    described = admin.streams_groups(ids, with_nodes=with_nodes) if ids else {}
    return {id_: group for id_, group in described.items() if not isinstance(group, KafkaError)}


def streams_facts(facts: GroupFacts, group: StreamsGroup) -> GroupFacts:
    """Return the facts with what the description of a group of the streams protocol adds.

    The topology of a group without members is the last one: it does not read topics now.
    """
    subscribed = group.read if group.members else frozenset[str]()
    return attrs.evolve(facts, state=group.state, members=len(group.members), subscribed=subscribed)


def group_facts(group: ListedGroup) -> GroupFacts:
    """Return the facts that the list of groups shows."""
    return GroupFacts(
        id=group.id,
        type=group.type,
        state="Unknown" if group.type is GroupType.STREAMS else group.state,
        protocol_type=group.protocol_type,
        assignor=group.assignor,
        members=group.members,
        subscribed=group.subscribed,
    )


def read_cleanup_policy(admin: GroupAdmin, topic: str) -> str:
    """Return the effective `cleanup.policy`, empty if it may not be read or the topic does not exist."""
    for config in admin.topic_configs(admin.request_topic_configs([topic])).values():
        if not isinstance(config, KafkaError):
            return str(config["cleanup.policy"].value or "")
    return ""


def _read_ownership(
    reader: ClusterReader, snapshot: ClusterSnapshot, *, is_requested: bool
) -> tuple[tuple[OwnershipRecord, ...], Sequence[UnreadEvidence]]:
    """Return the records; without permission to see their topic, Kafka says that it does not exist."""
    if snapshot.ownership is not None:
        return snapshot.ownership, _unread_records(snapshot.ownership_topic.unread)
    if not is_requested:
        return (), ()
    try:
        if OWNERSHIP_TOPIC not in snapshot.topics and not reader.topic_ids([OWNERSHIP_TOPIC]):
            return (), ()
        log = reader.read_ownership()
        return log.records, _unread_records(log.unread)
    except ProblemsError as error:
        if not all(problem.code is ProblemCode.NOT_AUTHORIZED for problem in error.problems):
            raise
        denied = UnreadEvidence(
            source=EvidenceSource.OWNERSHIP_RECORDS,
            cause=UnreadCause.NO_PERMISSION,
            permission=error.problems[0].expected or "",
        )
        return (), (denied,)


def _unread_records(unread: Sequence[UnreadRecord]) -> Sequence[UnreadEvidence]:
    """Return the records that cannot be used: each may name the topic."""
    return [
        UnreadEvidence(
            source=EvidenceSource.OWNERSHIP_RECORD, cause=UnreadCause.NOT_USABLE, name=each.location
        )
        for each in unread
    ]


def _sees_all_groups(admin: GroupAdmin) -> bool:
    """Return whether any group may be described: Kafka lists only groups that the user may see."""
    unknown = uuid4().hex
    answer = admin.groups([unknown])[unknown]
    return not (isinstance(answer, KafkaError) and is_denial(answer))


def _unread_group(id_: str, error: KafkaError) -> Sequence[UnreadEvidence]:
    """Return a group that the user may not read; raises `ProblemsError` for another failure."""
    if error.code() in _NO_SUCH_GROUP:
        return ()
    if is_denial(error):
        denied = UnreadEvidence(
            source=EvidenceSource.GROUP,
            cause=UnreadCause.NO_PERMISSION,
            name=id_,
            permission=f"permission {Operation.DESCRIBE}",
        )
        return (denied,)
    raise ProblemsError([unexpected_error(error, "read consumer group", id_)])
