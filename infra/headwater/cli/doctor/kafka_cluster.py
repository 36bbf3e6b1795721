"""Observe a cluster: connection, certificates, addresses, settings, permissions and agents.

Every request has a timeout, and none changes the cluster.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError

import attrs
from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    ClusterMetadata,
    ResourceType,
)

from headwater.compiler import StreamsConfig
from headwater.doctor.cluster import AgentFacts, AgentGroup, ClusterFacts, Login
from headwater.kafka import Connection
from headwater.kafka.addresses import certificate_days, unreachable
from headwater.kafka.admin import Admin
from headwater.kafka.group_messages import GroupDescription, GroupMember
from headwater.model.problems import ProblemsError
from headwater.model.topology import Protocol, TopologyDocument
from headwater.planner.acls.headwater import AGENT_PREFIX

TIMEOUT_SECONDS = 15.0
_ADDRESS_SECONDS = 5.0
_MOST_BROKERS = 50
_LOCAL = ("localhost", "127.", "[::1]")
_AUTHORIZER = "authorizer.class.name"
_SETTINGS = ("auto.create.topics.enable", "group.coordinator.rebalance.protocols", _AUTHORIZER)
_COORDINATORS = "__consumer_offsets"


@attrs.frozen
class ObservedCluster:
    """The facts, and the client and the metadata for further requests; None without a connection."""

    facts: ClusterFacts
    admin: Admin | None = None
    metadata: ClusterMetadata | None = None


def observe_cluster(
    connection: Connection, documents: Sequence[TopologyDocument], expected_cluster_id: str | None
) -> ObservedCluster:
    servers = connection.bootstrap_servers
    facts = ClusterFacts(
        login=_login_of(connection),
        servers=servers,
        unreachable=unreachable(servers, _ADDRESS_SECONDS),
        expected_cluster_id=expected_cluster_id,
        has_streams_applications=any(
            document.application.protocol is Protocol.STREAMS for document in documents
        ),
    )
    reachable = [server for server in servers if server not in facts.unreachable]
    days = certificate_days(connection, reachable[0], _ADDRESS_SECONDS) if reachable else None
    facts = attrs.evolve(facts, certificate_days=days)
    try:
        admin = Admin(connection, TIMEOUT_SECONDS)
        metadata = admin.metadata(admin.open())
    except ProblemsError as error:
        return ObservedCluster(attrs.evolve(facts, problem=error.problems[0]))
    brokers = {
        id_: f"{broker.host}:{broker.port}"
        for id_, broker in sorted(metadata.brokers.items())[:_MOST_BROKERS]
    }
    dead = unreachable(set(brokers.values()) - set(servers), _ADDRESS_SECONDS)
    partitions = [each for topic in metadata.topics.values() for each in topic.partitions.values()]
    facts = attrs.evolve(
        facts,
        cluster_id=str(metadata.cluster_id),
        brokers=brokers,
        unreachable={**facts.unreachable, **dead},
        settings=_read_settings(admin, brokers),
        features=_read_features(admin),
        leaderless=sum(partition.leader < 0 for partition in partitions),
        under_replicated=sum(len(partition.isrs) < len(partition.replicas) for partition in partitions),
    )
    return ObservedCluster(facts, admin, metadata)


def has_authorizer(facts: ClusterFacts) -> bool:
    """Return whether the brokers check permissions, as far as this user can see."""
    return facts.settings is None or bool(facts.settings.get(_AUTHORIZER))


def has_groups(observed: ObservedCluster) -> bool:
    """Return whether groups can be described: on a new cluster, the request would create a topic."""
    if observed.admin is None or observed.metadata is None:
        return False
    if _COORDINATORS in observed.metadata.topics:
        return True
    (answer,) = observed.admin.answers(observed.admin.request_topics([_COORDINATORS]))
    return not isinstance(answer[1], KafkaError) or answer[1].code() != KafkaError.UNKNOWN_TOPIC_OR_PART


def observe_agents(
    observed: ObservedCluster, documents: Sequence[TopologyDocument], *, with_groups: bool
) -> AgentFacts:
    """Return the groups of agents by their coordination topics; raises `ProblemsError`."""
    topics = sorted(
        name
        for name in (observed.metadata.topics if observed.metadata else ())
        if name.startswith(AGENT_PREFIX)
    )
    described = observed.admin.groups(topics) if observed.admin and topics and with_groups else {}
    autoscaled = [
        document.application.id
        for document in documents
        if StreamsConfig.of(document.application).autoscaling
    ]
    return AgentFacts(
        groups=[_agent_group(topic, described.get(topic)) for topic in topics], autoscaled=sorted(autoscaled)
    )


def _agent_group(topic: str, group: GroupDescription | KafkaError | None) -> AgentGroup:
    if group is None:
        return AgentGroup(topic=topic)
    if isinstance(group, KafkaError):
        if group.code() == KafkaError.GROUP_ID_NOT_FOUND:
            return AgentGroup(topic=topic)
        return AgentGroup(topic=topic, error=group.name())
    leaders = [member for member in group.members if member.assigned]
    return AgentGroup(
        topic=topic,
        members=sorted(map(_member_name, group.members)),
        leader=_member_name(leaders[0]) if leaders else None,
    )


def _member_name(member: GroupMember) -> str:
    return f"{member.client_id} at {member.host.lstrip('/')}"


def _login_of(connection: Connection) -> Login:
    return Login(
        protocol=connection.protocol,
        mechanism=connection.mechanism if connection.uses_sasl else None,
        username=connection.username,
        verifies=not connection.skip_tls_verify and connection.verify_hostname,
        is_local=all(server.startswith(_LOCAL) for server in connection.bootstrap_servers),
    )


def _read_settings(admin: Admin, brokers: Mapping[int, str]) -> Mapping[str, str] | None:
    """Return settings of one broker, None if the user may not read them."""
    pending = admin.request_configs(ResourceType.BROKER, [str(id_) for id_ in [*brokers][:1]])
    try:
        for _, answer in admin.answers(pending):
            if not isinstance(answer, KafkaError):
                return {key: str(answer[key].value or "") for key in _SETTINGS if key in answer}
    except ProblemsError:
        return None
    return None


def _read_features(admin: Admin) -> Mapping[str, int] | None:
    try:
        return admin.request_features().result(TIMEOUT_SECONDS)
    except (FutureTimeoutError, OSError):
        return None
