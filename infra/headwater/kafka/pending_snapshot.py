"""A snapshot whose requests are pending, and the conversion of their answers."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import attrs
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    ClusterMetadata,
    ConfigEntry,
    PartitionMetadata,
    TopicDescription,
)

from headwater.kafka.acl_bindings import acl_of, unlimited_acls
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.group_messages import DEAD
from headwater.kafka.kafka_errors import is_denial, is_moving, not_authorized, unexpected_error
from headwater.kafka.ownership import ownership_problem
from headwater.kafka.pending_requests import in_background
from headwater.kafka.reader import SnapshotRequest
from headwater.kafka.topic_settings import TopicSettings
from headwater.model.acls import LiveAcls, Operation
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic, RegisteredBrokers
from headwater.model.problems import Problem, ProblemsError
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipLog, OwnershipTopic
from headwater.model.streams_groups import StreamsGroup

if TYPE_CHECKING:
    from headwater.kafka.group_client import Groups
    from headwater.kafka.topic_settings import TopicConfig, TopicConfigs

T = TypeVar("T")
_AUTHORIZER = "authorizer.class.name"
_NOT_DESCRIBED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.MSG_SIZE_TOO_LARGE,
)
"""Errors of streams groups that may exist: a topic of the topology is hidden, the brokers are too old, or the
description is too large. Clients of a group decide its size, so it must not prevent a plan of others."""
# The lints report a name that no topic can have; the cluster has no such topic.
_ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION, KafkaError.GROUP_ID_NOT_FOUND)


class PendingSnapshot:
    """Sends all requests when it is created; `snapshot` waits for their answers.

    `partitions` (topic name → partition count, of all topics) is available at once.
    """

    def __init__(
        self,
        admin: GroupAdmin,
        request: SnapshotRequest,
        metadata: ClusterMetadata,
        read_ownership: Callable[[], OwnershipLog],
    ) -> None:
        self.partitions = {name: len(topic.partitions) for name, topic in metadata.topics.items()}
        described_names = sorted(name for name in self.partitions if _is_requested(name, request))
        # A topic without permission is not in the metadata: request by name those that should exist.
        unseen = (request.names | request.recorded.keys()) - self.partitions.keys()
        described = described_names if request.with_ids else request.recorded.keys() & self.partitions.keys()
        self._admin, self._request = admin, request
        self._ownership = (
            _PendingOwnership(admin, metadata, read_ownership) if request.with_ownership else None
        )
        self._listed = _ListedCluster.from_metadata(metadata, described_names)
        self._registered = in_background(admin.registered_brokers) if described_names else None
        self._groups = admin.request_groups(request.groups) if request.groups else None
        first_broker = next(iter(metadata.brokers), None)
        self._broker = None if first_broker is None else admin.request_broker_config(first_broker)
        self._descriptions = admin.request_topics(sorted({*described, *unseen}))
        self._configured = frozenset(described_names) - request.sources
        has_records = self._ownership is not None and self._ownership.has_topic
        names = self._configured | frozenset([OWNERSHIP_TOPIC] if has_records else [])
        self._configs = admin.request_topic_configs(sorted(names))
        self._features = admin.request_features() if request.with_features else None
        self._acls = admin.request_acls(request.acl_principals) if request.acl_principals else None
        self._operations = admin.request_cluster_operations() if request.acl_principals else None

    def snapshot(self) -> ClusterSnapshot:
        """Return the snapshot; call it once. Raises `ProblemsError` as `ClusterReader` says."""
        denied: list[Problem] = []
        settings = TopicSettings()
        configs = self._admin.topic_configs(self._configs)
        requested = {name: config for name, config in configs.items() if name in self._configured}
        _add_settings(settings, requested, denied, self._request.purpose)
        described = self._described_topics(settings, denied)
        groups = self._live_groups(denied)
        of_streams, streams_groups = self._streams_groups(groups, denied)
        defaults = self._broker_config()
        acls = self._live_acls(defaults, denied)
        ownership = self._ownership.read_records(denied) if self._ownership is not None else None
        if denied:
            raise ProblemsError(denied)
        topics = {
            name: LiveTopic(name, "", count, 0)
            for name, count in self.partitions.items()
            if name not in self._listed.topics
        }
        topics |= {
            name: attrs.evolve(topic, config=settings.own.get(name, {})) for name, topic in described.items()
        }
        registered = self._registered.result() if self._registered is not None else None
        topics |= {
            name: self._with_brokers(topics[name], registered)
            for name in described.keys() & self._listed.replicas
        }
        return ClusterSnapshot(
            cluster_id=self._listed.cluster_id,
            brokers=len(self._listed.brokers),
            hosts=self._listed.hosts,
            registered=registered,
            topics=topics | self._check_emptiness(topics),
            groups=groups | of_streams,
            streams_groups=streams_groups,
            described=frozenset(described),
            default_replication_factor=_config_number(defaults, "default.replication.factor"),
            default_min_insync_replicas=_config_number(defaults, "min.insync.replicas"),
            topic_defaults=settings.all_defaults(defaults),
            group_protocols=_config_words(defaults, "group.coordinator.rebalance.protocols"),
            features=self._features.result() if self._features else None,
            acls=acls,
            ownership=None if ownership is None else ownership.records,
            ownership_topic=self._ownership.describe_topic(ownership, configs.get(OWNERSHIP_TOPIC))
            if self._ownership is not None
            else OwnershipTopic(),
        )

    def _described_topics(self, settings: TopicSettings, denied: list[Problem]) -> dict[str, LiveTopic]:
        """Return the topics that exist; those whose ids were not requested as in the metadata.

        A topic may be created between the requests. Its settings are requested again then: without them it
        would seem to have none.
        """
        answers = self._admin.answers(self._descriptions)
        purpose = self._request.purpose
        visible = successful_answers(answers, "see topic", denied, purpose=purpose)
        found = {name: _live_topic(topic) for name, topic in visible}
        sources = self._request.sources
        created = sorted(found.keys() - settings.own.keys() - sources)
        if created and not denied:
            configs = self._admin.topic_configs(self._admin.request_topic_configs(created))
            _add_settings(settings, configs, denied, purpose)
        listed = {} if self._request.with_ids else self._listed.topics
        present = settings.own.keys() | sources
        return {name: topic for name, topic in {**listed, **found}.items() if name in present}

    def _with_brokers(self, topic: LiveTopic, registered: RegisteredBrokers | None) -> LiveTopic:
        """Return the topic with what is known about the brokers of its replicas."""
        replicas = self._listed.replicas[topic.name]
        known = registered.by_id if registered is not None else {}
        racks = {id_: broker.rack for id_, broker in known.items() if broker.rack}
        has_racks = bool(replicas) and all(each <= racks.keys() for each in replicas)
        return attrs.evolve(
            topic,
            silent=frozenset().union(*replicas) - self._listed.brokers,
            racks=min(len({racks[id_] for id_ in each}) for each in replicas) if has_racks else None,
        )

    def _broker_config(self) -> Mapping[str, ConfigEntry]:
        """Return the settings of a broker, empty without the permission to read them."""
        if self._broker is None:
            return {}
        answers = self._admin.answers(self._broker)
        return next((config for _, config in answers if not isinstance(config, KafkaError)), {})

    def _live_groups(self, denied: list[Problem]) -> dict[str, LiveGroup]:
        described: Groups = self._groups.result() if self._groups is not None else {}
        unavailable = {id_ for id_, group in described.items() if is_moving(group)}
        answered = ((id_, group) for id_, group in described.items() if id_ not in unavailable)
        groups = {
            id_: LiveGroup(
                id_,
                group.state,
                len(group.members),
                assignor=group.assignor,
                subscribed=frozenset().union(*(member.subscribed for member in group.members)),
            )
            for id_, group in successful_answers(answered, "see consumer group", denied)
            if group.state != DEAD
        }
        groups |= {id_: LiveGroup.without_coordinator(id_) for id_ in sorted(unavailable)}
        return groups

    def _streams_groups(
        self, known: Collection[str], denied: list[Problem]
    ) -> tuple[dict[str, LiveGroup], dict[str, StreamsGroup]]:
        """Return the groups of the streams protocol that are not in `known`, and their topologies."""
        requested = sorted(self._request.streams_groups - set(known))
        if not requested:
            return {}, {}
        answers = self._admin.streams_groups(requested, with_nodes=self._request.with_nodes)
        undescribed = [
            id_
            for id_, answer in answers.items()
            if isinstance(answer, KafkaError) and answer.code() in _NOT_DESCRIBED
        ]
        hidden = sorted(self._admin.existing_groups(undescribed)) if undescribed else []
        readable = (
            (id_, answer)
            for id_, answer in answers.items()
            if not isinstance(answer, KafkaError) or answer.code() not in _NOT_DESCRIBED
        )
        described = dict(successful_answers(readable, "see streams group", denied))
        groups = {
            id_: LiveGroup(id_, group.state, len(group.members), is_streams=True)
            for id_, group in described.items()
        }
        return groups | {id_: LiveGroup(id_, "Unknown", None, is_streams=True) for id_ in hidden}, described

    def _live_acls(self, broker: Mapping[str, ConfigEntry], denied: list[Problem]) -> LiveAcls | None:
        """Return the ACLs if the brokers have an authorizer and the user may read them.

        librdkafka (2.16) returns an empty list in both other cases. Without an authorizer any user may read
        the settings of brokers; with one, a user who may describe the cluster may read all ACLs.
        """
        if self._acls is None or self._operations is None:
            return None
        authorizer = broker.get(_AUTHORIZER)
        if authorizer is not None and not authorizer.value:
            return LiveAcls(has_authorizer=False)
        if Operation.DESCRIBE not in self._operations.result():
            error = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
            purpose = self._request.purpose
            denied.append(not_authorized(error, "list the ACLs of", "the cluster", purpose=purpose))
            return None
        bindings = self._admin.acls(self._acls)
        return LiveAcls(
            frozenset(acl for binding in bindings if (acl := acl_of(binding)) is not None),
            unlimited=frozenset(acl for binding in bindings for acl in unlimited_acls(binding)),
        )

    def _check_emptiness(self, topics: Mapping[str, LiveTopic]) -> dict[str, LiveTopic]:
        """Check whether anything was ever written to topics whose ids differ from the recorded ones."""
        replaced = [
            topics[name]
            for name, id_ in self._request.recorded.items()
            if id_ and name in topics and topics[name].topic_id != id_
        ]
        ends: dict[str, int] = {topic.name: 0 for topic in replaced}
        partitions = [
            TopicPartition(topic.name, number) for topic in replaced for number in range(topic.partitions)
        ]
        for partition, answer in self._admin.answers(self._admin.request_end_offsets(partitions)):
            # A partition that cannot be read may contain records.
            ends[partition.topic] += 1 if isinstance(answer, KafkaError) else answer.offset
        return {topic.name: attrs.evolve(topic, is_empty=ends[topic.name] == 0) for topic in replaced}


@attrs.frozen(kw_only=True)
class _ListedCluster:
    """What the metadata shows of a cluster, and of the topics that the snapshot describes.

    `replicas` is topic → the brokers of each partition.
    """

    cluster_id: str
    brokers: frozenset[int]
    hosts: tuple[str, ...]
    topics: Mapping[str, LiveTopic]
    replicas: Mapping[str, tuple[frozenset[int], ...]]

    @classmethod
    def from_metadata(cls, metadata: ClusterMetadata, names: Collection[str]) -> "_ListedCluster":
        return cls(
            cluster_id=str(metadata.cluster_id),
            brokers=frozenset(metadata.brokers),
            hosts=tuple(sorted({str(broker.host) for broker in metadata.brokers.values()})),
            topics={name: _list_topic(name, metadata.topics[name].partitions) for name in names},
            replicas={
                name: tuple(frozenset(each.replicas) for each in metadata.topics[name].partitions.values())
                for name in names
            },
        )


class _PendingOwnership:
    """The ownership records and their topic, which may not exist. The requests are sent at once."""

    def __init__(
        self, admin: GroupAdmin, metadata: ClusterMetadata, read_ownership: Callable[[], OwnershipLog]
    ) -> None:
        # A topic that is not in the metadata does not exist, or the user may not see it.
        self.has_topic = OWNERSHIP_TOPIC in metadata.topics
        self._admin, self._read_ownership = admin, read_ownership
        self._log = in_background(read_ownership) if self.has_topic else None
        self._topic = None if self.has_topic else admin.request_topics([OWNERSHIP_TOPIC])
        self._replicas = _most_replicas(metadata.topics[OWNERSHIP_TOPIC].partitions) if self.has_topic else 0

    def read_records(self, denied: list[Problem]) -> OwnershipLog | None:
        """Return the records; None without permission to read them, with a problem in `denied`."""
        if self._log is not None:
            try:
                return self._log.result()
            except ProblemsError as error:
                denied.extend(error.problems)
        if self._topic is None:
            return None
        (_, answer), *_ = self._admin.answers(self._topic)
        if not isinstance(answer, KafkaError):
            return self._read_ownership()  # it was created a moment ago
        if is_denial(answer):
            denied.append(ownership_problem(answer, Operation.READ))
        return OwnershipLog()

    def describe_topic(
        self, log: OwnershipLog | None, config: "TopicConfig | KafkaError | None"
    ) -> OwnershipTopic:
        """Return the topic of the records; without permission to read its settings, none are known."""
        if log is None:
            return OwnershipTopic()
        known = {} if config is None or isinstance(config, KafkaError) else config
        settings = {key: str(entry.value) for key, entry in known.items() if entry.value is not None}
        return OwnershipTopic(settings, self._replicas, log.unread, log.more_unread)


def successful_answers(
    answers: Iterable[tuple[str, T | KafkaError]],
    what: str,
    denied: list[Problem],
    operation: Operation = Operation.DESCRIBE,
    *,
    purpose: str = "",
) -> Iterator[tuple[str, T]]:
    """Yield the successful answers; skip what does not exist, and collect denials in `denied`.

    `purpose` is what the user is for (`not_authorized`).
    """
    for name, answer in answers:
        if not isinstance(answer, KafkaError):
            yield name, answer
        elif is_denial(answer):
            denied.append(not_authorized(answer, what, name, operation, purpose=purpose))
        elif answer.code() not in _ABSENT:
            raise ProblemsError([unexpected_error(answer, what, name)])


def _add_settings(
    settings: TopicSettings, configs: "TopicConfigs", denied: list[Problem], purpose: str
) -> None:
    what, right = "read the settings of topic", Operation.DESCRIBE_CONFIGS
    equal: dict[int, tuple[list[str], TopicConfig]] = {}
    for name, config in successful_answers(configs.items(), what, denied, right, purpose=purpose):
        equal.setdefault(id(config), ([], config))[0].append(name)
    for names, config in equal.values():
        settings.add(names, config)


def _is_requested(name: str, request: SnapshotRequest) -> bool:
    return (
        name in request.names
        or name in request.recorded
        or name.startswith(request.prefixes)
        or any(re.fullmatch(pattern, name) for pattern in request.patterns)
    )


def _live_topic(description: TopicDescription) -> LiveTopic:
    return LiveTopic(
        name=description.name,
        topic_id=str(description.topic_id),
        partitions=len(description.partitions),
        replication_factor=max((len(partition.replicas) for partition in description.partitions), default=0),
        in_sync=min((len(partition.isr) for partition in description.partitions), default=None),
        leaderless=sum(partition.leader is None for partition in description.partitions),
    )


def _list_topic(name: str, partitions: Mapping[int, PartitionMetadata]) -> LiveTopic:
    """Return what the metadata has of a topic; its id is not known."""
    return LiveTopic(
        name,
        "",
        len(partitions),
        _most_replicas(partitions),
        in_sync=min((len(each.isrs) for each in partitions.values()), default=None),
        leaderless=sum(each.leader < 0 for each in partitions.values()),
    )


def _most_replicas(partitions: Mapping[int, PartitionMetadata]) -> int:
    return max((len(partition.replicas) for partition in partitions.values()), default=0)


def _config_words(config: Mapping[str, ConfigEntry], key: str) -> frozenset[str] | None:
    """Return the items of a list, None if the setting is not known."""
    entry = config.get(key)
    if entry is None or entry.value is None:
        return None
    return frozenset(word.strip().lower() for word in str(entry.value).split(","))


def _config_number(config: Mapping[str, ConfigEntry], key: str) -> int | None:
    entry = config.get(key)
    return int(entry.value) if entry is not None and entry.value is not None else None
