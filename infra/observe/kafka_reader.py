"""Read a cluster by the Kafka admin client, in a handful of batched requests."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs
from confluent_kafka import ConsumerGroupState, KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    ConfigEntry,
    ConfigSource,
    ResourceType,
    TopicDescription,
)

from infra.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from infra.model.problems import Problem, ProblemsError
from infra.observe.admin import Admin
from infra.observe.connection import Connection
from infra.observe.reader import SnapshotRequest
from infra.observe.refusals import is_denial, not_authorized, unexpected

CHUNK = 1_000
"""Topics in one request; larger answers come close to the brokers' limits."""
T = TypeVar("T")
_ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)


class KafkaClusterReader:
    """A `ClusterReader`; `requests` counts the admin requests sent so far, chunk by chunk."""

    def __init__(self, connection: Connection, timeout_seconds: float = 15.0) -> None:
        """Connect when first asked; raises `ProblemsError` (InvalidConfig) for unfit settings."""
        self._admin = Admin(connection, timeout_seconds)

    @property
    def requests(self) -> int:
        return self._admin.requests

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        """Return what was asked for; raises `ProblemsError` as `ClusterReader` says."""
        cluster_id = self._admin.connect()
        metadata = self._admin.metadata()
        counts = {name: len(topic.partitions) for name, topic in metadata.topics.items()}
        broker = next(iter(sorted(metadata.brokers)), None)
        denials: list[Problem] = []
        wanted = sorted(name for name in counts if _is_wanted(name, request))
        # A topic that may not be seen is not in the metadata: ask by name for those that ought to be there.
        unseen = sorted((request.names | request.recorded.keys()) - counts.keys())
        descriptions = self._described(wanted + unseen, denials)
        configs = self._configs(sorted(descriptions), denials)
        groups = self._groups(request.groups, request.streams_groups, denials)
        defaults = self._broker_config(broker)
        if denials:
            raise ProblemsError(denials)
        topics = {name: LiveTopic(name, "", count, 0) for name, count in counts.items()}
        topics |= {
            name: _live(description, configs.get(name, {})) for name, description in descriptions.items()
        }
        return ClusterSnapshot(
            cluster_id=cluster_id,
            brokers=len(metadata.brokers),
            topics=topics | self._emptiness(topics, request.recorded),
            groups=groups,
            described=frozenset(descriptions),
            default_replication_factor=_number(defaults, "default.replication.factor"),
            default_min_insync_replicas=_number(defaults, "min.insync.replicas"),
            topic_defaults=_topic_defaults(configs.values()),
        )

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return name → id of those that exist; raises `ProblemsError`."""
        self._admin.connect()
        denials: list[Problem] = []
        descriptions = self._described(names, denials)
        if denials:
            raise ProblemsError(denials)
        return {name: str(description.topic_id) for name, description in descriptions.items()}

    def _described(self, names: Sequence[str], denials: list[Problem]) -> dict[str, TopicDescription]:
        found: dict[str, TopicDescription] = {}
        for chunk in _chunks(names):
            found |= _successes(self._admin.topics(chunk), "see topic", denials)
        return found

    def _configs(self, names: Sequence[str], denials: list[Problem]) -> dict[str, Mapping[str, ConfigEntry]]:
        found: dict[str, Mapping[str, ConfigEntry]] = {}
        for chunk in _chunks(names):
            answers = self._admin.configs(ResourceType.TOPIC, chunk)
            found |= _successes(answers, "read the settings of topic", denials)
        return found

    def _broker_config(self, broker: int | None) -> Mapping[str, ConfigEntry]:
        """A user need not be allowed to read it: then the defaults stay unknown."""
        if broker is None:
            return {}
        answer = self._admin.configs(ResourceType.BROKER, [str(broker)])[str(broker)]
        return {} if isinstance(answer, KafkaError) else answer

    def _groups(
        self, ids: Sequence[str], streams: Collection[str], denials: list[Problem]
    ) -> dict[str, LiveGroup]:
        if not ids:
            return {}
        found = _successes(self._admin.groups(ids), "see consumer group", denials)
        groups = {
            id_: LiveGroup(id_, group.state.name.capitalize(), len(group.members))
            for id_, group in found.items()
            if group.state is not ConsumerGroupState.DEAD
        }
        hidden = [id_ for id_ in sorted(streams) if id_ not in groups and self._admin.has_group(id_)]
        return groups | {id_: LiveGroup(id_, "Unknown", None) for id_ in hidden}

    def _emptiness(
        self, topics: Mapping[str, LiveTopic], recorded: Mapping[str, str]
    ) -> dict[str, LiveTopic]:
        """Ask, for topics that are not the recorded ones, whether anything was ever written to them."""
        replaced = [
            topics[name]
            for name, id_ in recorded.items()
            if id_ and name in topics and topics[name].topic_id != id_
        ]
        ends: dict[str, int] = {topic.name: 0 for topic in replaced}
        partitions = [
            TopicPartition(topic.name, number) for topic in replaced for number in range(topic.partitions)
        ]
        for chunk in _chunks(partitions):
            for partition, answer in self._admin.end_offsets(chunk).items():
                # What cannot be read is not known to be empty.
                ends[partition.topic] += 1 if isinstance(answer, KafkaError) else answer.offset
        return {topic.name: attrs.evolve(topic, is_empty=ends[topic.name] == 0) for topic in replaced}


def _is_wanted(name: str, request: SnapshotRequest) -> bool:
    return (
        name in request.names
        or name in request.recorded
        or name.startswith(request.prefixes)
        or any(re.fullmatch(pattern, name) for pattern in request.patterns)
    )


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _successes(answers: Mapping[str, T | KafkaError], what: str, denials: list[Problem]) -> dict[str, T]:
    """Return the answers that came; what does not exist is left out, denials are collected."""
    found: dict[str, T] = {}
    for name, answer in answers.items():
        if not isinstance(answer, KafkaError):
            found[name] = answer
        elif is_denial(answer):
            denials.append(not_authorized(answer, what, name))
        elif answer.code() not in _ABSENT:
            raise ProblemsError([unexpected(answer, what, name)])
    return found


def _live(description: TopicDescription, config: Mapping[str, ConfigEntry]) -> LiveTopic:
    return LiveTopic(
        name=description.name,
        topic_id=str(description.topic_id),
        partitions=len(description.partitions),
        replication_factor=max((len(partition.replicas) for partition in description.partitions), default=0),
        config={
            key: entry.value or ""
            for key, entry in config.items()
            if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
        },
    )


def _topic_defaults(configs: Iterable[Mapping[str, ConfigEntry]]) -> dict[str, str]:
    """What holds where a topic sets nothing: the same for all topics, so one that does not set it tells."""
    defaults: dict[str, str] = {}
    for config in configs:
        for key, entry in config.items():
            if (
                key not in defaults
                and entry.value is not None
                and ConfigSource(entry.source) is not ConfigSource.DYNAMIC_TOPIC_CONFIG
            ):
                defaults[key] = entry.value
    return defaults


def _number(config: Mapping[str, ConfigEntry], key: str) -> int | None:
    entry = config.get(key)
    return int(entry.value) if entry is not None and entry.value is not None else None
