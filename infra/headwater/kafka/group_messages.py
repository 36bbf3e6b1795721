"""The requests to coordinators of groups, and the values of their answers.

Members of a classic group exchange bytes with what they subscribe to and are assigned.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.broker_connection import Message
from headwater.kafka.wire import NO_TAGS, ResponseReader, compact_array, compact_text
from headwater.model.cluster import GroupType, RegisteredBroker, RegisteredBrokers


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a `ConsumerProtocolSubscription` (Kafka protocol): version, then names.

    Bytes of another protocol yield no topics.
    """
    return _read_topics(metadata, with_partitions=False)


def assigned_topics(assignment: bytes) -> frozenset[str]:
    """Return the topics of a `ConsumerProtocolAssignment`: version, then names with partitions.

    Bytes of another protocol yield no topics.
    """
    return _read_topics(assignment, with_partitions=True)


def _read_topics(data: bytes, *, with_partitions: bool) -> frozenset[str]:
    try:
        return frozenset(_read_names(ResponseReader(data), with_partitions=with_partitions))
    except ValueError:
        return frozenset()


def _read_names(reader: ResponseReader, *, with_partitions: bool) -> Iterator[str]:
    reader.skip(2)  # version
    for _ in range(reader.number(4)):
        yield reader.take(reader.number(2)).decode()
        if with_partitions:
            reader.skip(4 * max(0, reader.number(4)))


FIND_COORDINATOR = Message("FindCoordinator", 10, 4, 4)
DESCRIBE_GROUPS = Message("DescribeGroups", 15, 5, 5)
DESCRIBE_CONSUMER_GROUPS = Message("ConsumerGroupDescribe", 69, 0, 0)
LIST_GROUPS = Message("ListGroups", 16, 4, 5)
FETCH_OFFSETS = Message("OffsetFetch", 9, 8, 8)
COMMIT_OFFSETS = Message("OffsetCommit", 8, 8, 8)
DESCRIBE_CLUSTER = Message("DescribeCluster", 60, 0, 0)
DESCRIBE_BROKERS = Message("DescribeCluster", 60, 0, 2)

DEAD = "Dead"
"""The state of a group that does not exist, or has another protocol than the request."""
_FIRST_VERSION_WITH_TYPES = 5
_NO_EPOCH = (-1).to_bytes(4, "big", signed=True)
_FIRST_VERSION_WITH_ENDPOINTS, _FIRST_VERSION_WITH_FENCED = 1, 2
_TYPES = {
    "classic": GroupType.CLASSIC,
    "consumer": GroupType.CONSUMER,
    "streams": GroupType.STREAMS,
}


@attrs.frozen(kw_only=True)
class GroupMember:
    """A member of a group: its client, and the topics that it subscribes to and is assigned."""

    client_id: str = ""
    host: str = ""
    subscribed: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class GroupDescription:
    """A group as its coordinator describes it; `state` in the broker's words.

    `operations` are the codes of the operations that the user may perform on it; None = not requested.
    """

    id: str
    state: str
    protocol_type: str = ""
    assignor: str = ""
    members: tuple[GroupMember, ...] = ()
    operations: frozenset[int] | None = None


@attrs.frozen(kw_only=True)
class GroupListing:
    """A group in the list of its coordinator."""

    id: str
    type: GroupType
    state: str
    protocol_type: str


@attrs.frozen
class ClusterDescription:
    """The addresses of the brokers that are alive, and the codes of the user's operations on the cluster."""

    brokers: tuple[str, ...]
    operations: frozenset[int] | None


Answers = Sequence[tuple[str, GroupDescription | KafkaError]]


def find_coordinator(ids: Iterable[str]) -> bytes:
    return b"\x00" + compact_array(map(compact_text, ids)) + NO_TAGS


def read_coordinators(reader: ResponseReader) -> Sequence[tuple[str, str | KafkaError]]:
    """Read groups, each with the address of the broker that coordinates it."""
    reader.skip(4)  # throttle time

    def read() -> tuple[str, str | KafkaError]:
        id_ = reader.compact_text()
        reader.skip(4)  # id of the broker
        host, port = reader.compact_text(), reader.number(4)
        code = reader.number(2)
        reader.compact_text()  # message
        reader.tagged_fields()
        return id_, KafkaError(code) if code else broker_address(host, port)

    return tuple(reader.compact_array(read))


def describe_groups(ids: Iterable[str], *, with_operations: bool) -> bytes:
    """Return the body of DescribeGroups and of ConsumerGroupDescribe."""
    return compact_array(map(compact_text, ids)) + (b"\x01" if with_operations else b"\x00") + NO_TAGS


def classic_groups(reader: ResponseReader) -> Answers:
    """Return the answer to DescribeGroups."""
    reader.skip(4)  # throttle time
    return tuple(reader.compact_array(partial(_classic_group, reader)))


def _classic_group(reader: ResponseReader) -> tuple[str, GroupDescription | KafkaError]:
    code, id_ = reader.number(2), reader.compact_text()
    state, protocol_type, assignor = reader.compact_text(), reader.compact_text(), reader.compact_text()
    members = tuple(reader.compact_array(partial(_classic_member, reader)))
    operations = _operation_codes(reader.number(4))
    reader.tagged_fields()
    if code:
        return id_, KafkaError(code)
    return id_, GroupDescription(
        id=id_,
        state=state,
        protocol_type=protocol_type,
        assignor=assignor,
        members=members,
        operations=operations,
    )


def _classic_member(reader: ResponseReader) -> GroupMember:
    reader.compact_text()  # id
    reader.compact_text()  # id of the instance
    client, host = reader.compact_text(), reader.compact_text()
    metadata, assignment = reader.compact_bytes(), reader.compact_bytes()
    reader.tagged_fields()
    return GroupMember(
        client_id=client,
        host=host,
        subscribed=subscribed_topics(metadata),
        assigned=assigned_topics(assignment),
    )


def consumer_groups(reader: ResponseReader) -> Answers:
    """Return the answer to ConsumerGroupDescribe (KIP-848)."""
    reader.skip(4)  # throttle time
    return tuple(reader.compact_array(partial(_consumer_group, reader)))


def _consumer_group(reader: ResponseReader) -> tuple[str, GroupDescription | KafkaError]:
    code = reader.number(2)
    reader.compact_text()  # message
    id_, state = reader.compact_text(), reader.compact_text()
    reader.skip(8)  # epochs
    assignor = reader.compact_text()
    members = tuple(reader.compact_array(partial(_consumer_member, reader)))
    operations = _operation_codes(reader.number(4))
    reader.tagged_fields()
    if code:
        return id_, KafkaError(code)
    return id_, GroupDescription(
        id=id_,
        state=state,
        protocol_type="consumer",
        assignor=assignor,
        members=members,
        operations=operations,
    )


def _consumer_member(reader: ResponseReader) -> GroupMember:
    for _ in range(3):
        reader.compact_text()  # id, id of the instance, rack
    reader.skip(4)  # epoch
    client, host = reader.compact_text(), reader.compact_text()
    subscribed = frozenset(reader.compact_array(reader.compact_text))
    reader.compact_text()  # regular expression
    assigned, _ = frozenset(_read_assignment(reader)), frozenset(_read_assignment(reader))
    reader.tagged_fields()
    return GroupMember(client_id=client, host=host, subscribed=subscribed, assigned=assigned)


def _read_assignment(reader: ResponseReader) -> Iterator[str]:
    def topic() -> str:
        reader.skip(16)  # id
        name = reader.compact_text()
        for _ in reader.compact_array(partial(reader.skip, 4)):
            pass
        reader.tagged_fields()
        return name

    yield from reader.compact_array(topic)
    reader.tagged_fields()


def list_groups(version: int) -> bytes:
    """Return the body for all states and types."""
    types = compact_array(()) if version >= _FIRST_VERSION_WITH_TYPES else b""
    return compact_array(()) + types + NO_TAGS


def listed_groups(version: int, reader: ResponseReader) -> Sequence[GroupListing] | KafkaError:
    reader.skip(4)  # throttle time
    code = reader.number(2)

    def read() -> GroupListing:
        id_, protocol_type, state = reader.compact_text(), reader.compact_text(), reader.compact_text()
        type_ = reader.compact_text() if version >= _FIRST_VERSION_WITH_TYPES else ""
        reader.tagged_fields()
        group_type = _TYPES.get(type_.lower(), GroupType.CLASSIC)
        return GroupListing(id=id_, type=group_type, state=state, protocol_type=protocol_type)

    groups = tuple(reader.compact_array(read))
    return KafkaError(code) if code else groups


def fetch_offsets(ids: Iterable[str]) -> bytes:
    """Return the body for all committed offsets of groups, without waiting for open transactions."""
    groups = compact_array(compact_text(id_) + b"\x00" + NO_TAGS for id_ in ids)
    return groups + b"\x00" + NO_TAGS


def committed_topics(reader: ResponseReader) -> Sequence[tuple[str, frozenset[str] | KafkaError]]:
    """Return group id → the topics with committed offsets."""
    reader.skip(4)  # throttle time

    def partition() -> bool:
        reader.skip(4)  # number
        has_offset = reader.number(8) >= 0
        reader.skip(4)  # epoch of the leader
        reader.compact_bytes()  # metadata
        reader.skip(2)  # error, of a partition of an unknown topic
        reader.tagged_fields()
        return has_offset

    def topic() -> tuple[str, bool]:
        name = reader.compact_text()
        has_offsets = any([*reader.compact_array(partition)])
        reader.tagged_fields()
        return name, has_offsets

    def group() -> tuple[str, frozenset[str] | KafkaError]:
        id_ = reader.compact_text()
        topics = frozenset(name for name, has_offsets in reader.compact_array(topic) if has_offsets)
        code = reader.number(2)
        reader.tagged_fields()
        return id_, KafkaError(code) if code else topics

    return tuple(reader.compact_array(group))


def commit_offsets(id_: str, commits: Mapping[tuple[str, int], tuple[int, str]]) -> bytes:
    """Return the body that commits partition → (offset, text) for a group without members."""
    topics: dict[str, list[bytes]] = defaultdict(list)
    for (topic, partition), (offset, text) in commits.items():
        numbers = partition.to_bytes(4, "big") + offset.to_bytes(8, "big") + _NO_EPOCH
        topics[topic].append(numbers + compact_text(text) + NO_TAGS)
    no_member = _NO_EPOCH + compact_text("") + b"\x00"  # generation, id, id of the instance: null
    body = (compact_text(topic) + compact_array(each) + NO_TAGS for topic, each in topics.items())
    return compact_text(id_) + no_member + compact_array(body) + NO_TAGS


def refused_commits(reader: ResponseReader) -> Sequence[tuple[str, int, KafkaError]]:
    """Return (topic, partition, error) for the partitions whose offsets were not committed."""
    reader.skip(4)  # throttle time

    def partition() -> tuple[int, int]:
        found = reader.number(4), reader.number(2)
        reader.tagged_fields()
        return found

    def topic() -> list[tuple[str, int, KafkaError]]:
        name = reader.compact_text()
        found = [(name, number, KafkaError(code)) for number, code in reader.compact_array(partition) if code]
        reader.tagged_fields()
        return found

    return [each for found in reader.compact_array(topic) for each in found]


def describe_cluster(*, with_operations: bool) -> bytes:
    return (b"\x01" if with_operations else b"\x00") + NO_TAGS


def cluster_description(reader: ResponseReader) -> ClusterDescription | KafkaError:
    reader.skip(4)  # throttle time
    code = reader.number(2)
    reader.compact_text()  # message
    reader.compact_text()  # id of the cluster
    reader.skip(4)  # id of the controller

    def broker() -> str:
        reader.skip(4)  # id
        host, port = reader.compact_text(), reader.number(4)
        reader.compact_text()  # rack
        reader.tagged_fields()
        return broker_address(host, port)

    brokers = tuple(reader.compact_array(broker))
    operations = _operation_codes(reader.number(4))
    return KafkaError(code) if code else ClusterDescription(brokers, operations)


def describe_brokers(version: int) -> bytes:
    """Return the body of DescribeCluster without operations: of all brokers, fenced ones included."""
    of_brokers = b"\x01" if version >= _FIRST_VERSION_WITH_ENDPOINTS else b""
    fenced = b"\x01" if version >= _FIRST_VERSION_WITH_FENCED else b""
    return b"\x00" + of_brokers + fenced + NO_TAGS


def registered_brokers(version: int, reader: ResponseReader) -> RegisteredBrokers | KafkaError:
    """Return the answer to DescribeCluster (KIP-700, KIP-1073)."""
    has_fenced = version >= _FIRST_VERSION_WITH_FENCED
    reader.skip(4)  # throttle time
    code = reader.number(2)
    reader.compact_text()  # message
    if version >= _FIRST_VERSION_WITH_ENDPOINTS:
        reader.skip(1)
    reader.compact_text()  # id of the cluster
    reader.skip(4)  # id of the controller

    def broker() -> RegisteredBroker:
        id_ = reader.number(4)
        host, port = reader.compact_text(), reader.number(4)
        rack = reader.compact_text()
        is_fenced = has_fenced and bool(reader.number(1))
        reader.tagged_fields()
        return RegisteredBroker(
            id=id_, address=broker_address(host, port), rack=rack or "", is_fenced=is_fenced
        )

    found = tuple(reader.compact_array(broker))
    return KafkaError(code) if code else RegisteredBrokers({each.id: each for each in found}, has_fenced)


def _operation_codes(bits: int) -> frozenset[int] | None:
    """Return the codes of the operations (KIP-430): bit n stands for the operation with code n."""
    return None if bits < 0 else frozenset(code for code in range(31) if bits >> code & 1)


def broker_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
