"""Observe a cluster: connection, certificates, addresses, settings, permissions and agents.

Every request has a timeout, and none changes the cluster.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError

import attrs
from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    ClusterMetadata,
    ConfigEntry,
)

from headwater.compiler import StreamsConfig
from headwater.doctor.agents import AgentFacts, AgentGroup
from headwater.doctor.broker_defaults import READ_SETTINGS, DeclaredSettings
from headwater.doctor.cluster import ClusterFacts, Login, ReplicaFacts
from headwater.kafka import Connection
from headwater.kafka.broker_connection import certificate_days, find_unreachable
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.group_messages import GroupDescription, GroupMember
from headwater.model.broker_defaults import BROKER_DEFAULTS
from headwater.model.cluster import RegisteredBrokers, required_in_sync
from headwater.model.expansions import AGENT_PREFIX
from headwater.model.problems import ProblemsError
from headwater.model.topology import Protocol, TopologyDocument

TIMEOUT_SECONDS = 15.0
_ADDRESS_SECONDS = 5.0
_MOST_ADDRESSES = 50
_LOCAL = ("localhost", "127.", "[::1]")
_AUTHORIZER = "authorizer.class.name"
_SETTINGS = (
    "auto.create.topics.enable",
    "group.coordinator.rebalance.protocols",
    _AUTHORIZER,
    *READ_SETTINGS,
)
_MIN_IN_SYNC, _CORDONED = "min.insync.replicas", "cordoned.log.dirs"
_MOST_TOPICS = 1_000
_COORDINATORS = "__consumer_offsets"


@attrs.frozen
class ObservedCluster:
    """The facts, and the client and the metadata for further requests; None without a connection."""

    facts: ClusterFacts
    admin: GroupAdmin | None = None
    metadata: ClusterMetadata | None = None


def observe_cluster(
    connection: Connection, documents: Sequence[TopologyDocument], expected_cluster_id: str | None
) -> ObservedCluster:
    """Return what a cluster answers, and what `documents` expect of it.

    Takes seconds for each address that does not answer. Without a connection, the facts have its problem.
    """
    servers = connection.bootstrap_servers
    facts = ClusterFacts(
        login=_login_of(connection),
        servers=servers,
        unreachable=find_unreachable(servers, _ADDRESS_SECONDS),
        expected_cluster_id=expected_cluster_id,
        has_streams_applications=any(
            document.application.protocol is Protocol.STREAMS for document in documents
        ),
        profiles={
            document.application.id: profile.name
            if (profile := document.application.cluster_profile)
            else None
            for document in documents
        },
        topic_settings={document.application.id: _declared_settings(document) for document in documents},
    )
    reachable = [server for server in servers if server not in facts.unreachable]
    days = certificate_days(connection, reachable[0], _ADDRESS_SECONDS) if reachable else None
    facts = attrs.evolve(facts, certificate_days=days)
    try:
        admin = GroupAdmin(connection, TIMEOUT_SECONDS)
        metadata = admin.metadata(admin.open())
    except ProblemsError as error:
        return ObservedCluster(attrs.evolve(facts, problem=error.problems[0]))
    brokers = {id_: f"{broker.host}:{broker.port}" for id_, broker in sorted(metadata.brokers.items())}
    checked = [*brokers.values()][:_MOST_ADDRESSES]
    dead = find_unreachable(set(checked) - set(servers), _ADDRESS_SECONDS)
    registered = admin.registered_brokers()
    facts = attrs.evolve(
        facts,
        cluster_id=str(metadata.cluster_id),
        brokers=brokers,
        unchecked_addresses=len(brokers) - len(checked),
        unreachable={**facts.unreachable, **dead},
        settings=_read_settings(admin, brokers),
        features=_read_features(admin),
        registered=registered,
        replicas=_count_replicas(admin, metadata, registered),
        cordoned=_read_cordoned(admin, [id_ for id_, address in brokers.items() if address not in dead]),
    )
    return ObservedCluster(facts, admin, metadata)


def _declared_settings(document: TopologyDocument) -> DeclaredSettings:
    profile, config = (
        document.application.cluster_profile,
        StreamsConfig.from_application(document.application),
    )
    return DeclaredSettings(
        keys=frozenset(config.topic_overrides),
        refused=frozenset(key for key in BROKER_DEFAULTS if profile is not None and profile.refuses(key)),
        largest_request=config.largest_request,
    )


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
        if StreamsConfig.from_application(document.application).autoscaling
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


def _read_settings(admin: GroupAdmin, brokers: Mapping[int, str]) -> Mapping[str, str] | None:
    """Return settings of one broker, None if the user may not read them."""
    if not brokers:
        return None
    pending = admin.request_broker_config(next(iter(brokers)))
    try:
        for _, answer in admin.answers(pending):
            if not isinstance(answer, KafkaError):
                return {key: str(answer[key].value or "") for key in _SETTINGS if key in answer}
    except ProblemsError:
        return None
    return None


def _count_replicas(
    admin: GroupAdmin, metadata: ClusterMetadata, registered: RegisteredBrokers | None
) -> ReplicaFacts:
    partitions = [
        (name, each) for name, topic in metadata.topics.items() for each in topic.partitions.values()
    ]
    short = [(name, each) for name, each in partitions if len(each.isrs) < len(each.replicas)]
    least = _read_least_in_sync(admin, sorted({name for name, _ in short})[:_MOST_TOPICS])
    spare = [
        len(each.isrs) - required_in_sync(least[name], len(each.replicas))
        for name, each in short
        if name in least and each.leader >= 0
    ]
    known = registered.by_id if registered is not None else {}
    racks = {id_: broker.rack for id_, broker in known.items() if broker.rack}
    has_several_racks = registered is not None and len(registered.racks) > 1
    return ReplicaFacts(
        leaderless=sum(each.leader < 0 for _, each in partitions),
        under_replicated=len(short),
        below_minimum=sum(number < 0 for number in spare),
        at_minimum=sum(number == 0 for number in spare),
        in_one_rack=sum(
            has_several_racks
            and len(each.replicas) > 1
            and all(id_ in racks for id_ in each.replicas)
            and len({racks[id_] for id_ in each.replicas}) == 1
            for _, each in partitions
        ),
        silent=Counter(id_ for _, each in partitions for id_ in each.replicas if id_ not in metadata.brokers),
    )


def _read_least_in_sync(admin: GroupAdmin, topics: Sequence[str]) -> Mapping[str, int]:
    """Return topic → `min.insync.replicas`, of topics whose settings the user may read."""
    pending = admin.request_topic_configs(topics)
    try:
        return {
            name: int(str(answer[_MIN_IN_SYNC].value))
            for name, answer in admin.topic_configs(pending).items()
            if not isinstance(answer, KafkaError) and _MIN_IN_SYNC in answer
        }
    except ProblemsError:
        return {}


def _read_cordoned(admin: GroupAdmin, brokers: Iterable[int]) -> frozenset[int]:
    """Return the brokers of which all log folders are cordoned, as far as the user may read settings."""
    found: set[int] = set()
    # Each broker answers for itself: all are asked before the first answer is awaited.
    requests = {id_: admin.request_broker_config(id_) for id_ in brokers}
    for id_, pending in requests.items():
        try:
            found |= {id_ for _, answer in admin.answers(pending) if _is_cordoned(answer)}
        except ProblemsError:
            continue
    return frozenset(found)


def _is_cordoned(answer: Mapping[str, ConfigEntry] | KafkaError) -> bool:
    if isinstance(answer, KafkaError) or _CORDONED not in answer:
        return False
    cordoned = _list_items(answer[_CORDONED].value)
    return cordoned == {"*"} or (bool(cordoned) and cordoned >= _list_items(answer["log.dirs"].value))


def _list_items(value: object) -> frozenset[str]:
    return frozenset(item.strip() for item in str(value or "").split(",") if item.strip())


def _read_features(admin: GroupAdmin) -> Mapping[str, int] | None:
    try:
        return admin.request_features().result(TIMEOUT_SECONDS)
    except (FutureTimeoutError, OSError):
        return None
