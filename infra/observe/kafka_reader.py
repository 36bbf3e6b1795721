"""Read a cluster by the Kafka admin client, in a handful of batched requests."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

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
from infra.observe.admin import Admin, Asked
from infra.observe.connection import Connection
from infra.observe.reader import SnapshotRequest
from infra.observe.refusals import is_denial, not_authorized, unexpected

T = TypeVar("T")
# The library annotates the enum and gives its number.
_SET_ON_TOPIC: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
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
        wanted = sorted(name for name in counts if _is_wanted(name, request))
        # A topic that may not be seen is not in the metadata: ask by name for those that ought to be there.
        unseen = sorted((request.names | request.recorded.keys()) - counts.keys())
        descriptions = self._admin.ask_topics(wanted + unseen)
        configs = self._admin.ask_configs(ResourceType.TOPIC, wanted)
        broker = self._admin.ask_configs(
            ResourceType.BROKER, [str(id_) for id_ in sorted(metadata.brokers)[:1]]
        )
        denied: list[Problem] = []
        described = self._described(descriptions, denied)
        settings = self._settings(configs, denied)
        groups = self._groups(request.groups, request.streams_groups, denied)
        if denied:
            raise ProblemsError(denied)
        topics = {name: LiveTopic(name, "", counts[name], 0) for name in counts.keys() - set(wanted)}
        topics |= {
            name: attrs.evolve(topic, config=settings.own.get(name, {})) for name, topic in described.items()
        }
        defaults = self._broker_config(broker)
        return ClusterSnapshot(
            cluster_id=cluster_id,
            brokers=len(metadata.brokers),
            topics=topics | self._emptiness(topics, request.recorded),
            groups=groups,
            described=frozenset(described),
            default_replication_factor=_number(defaults, "default.replication.factor"),
            default_min_insync_replicas=_number(defaults, "min.insync.replicas"),
            topic_defaults=settings.defaults,
        )

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return name → id of those that exist; raises `ProblemsError`."""
        self._admin.connect()
        denied: list[Problem] = []
        found = self._described(self._admin.ask_topics(names), denied)
        if denied:
            raise ProblemsError(denied)
        return {name: topic.topic_id for name, topic in found.items()}

    def _described(self, asked: Asked[str, TopicDescription], denied: list[Problem]) -> dict[str, LiveTopic]:
        answers = self._admin.answers(asked)
        return {name: _live(topic) for name, topic in _successes(answers, "see topic", denied)}

    def _settings(self, asked: Asked[str, Mapping[str, ConfigEntry]], denied: list[Problem]) -> "_Settings":
        settings, answers = _Settings(), self._admin.answers(asked)
        for name, config in _successes(answers, "read the settings of topic", denied):
            settings.add(name, config)
        return settings

    def _broker_config(self, asked: Asked[str, Mapping[str, ConfigEntry]]) -> Mapping[str, ConfigEntry]:
        """A user need not be allowed to read it: then the defaults stay unknown."""
        answers = self._admin.answers(asked)
        return next((config for _, config in answers if not isinstance(config, KafkaError)), {})

    def _groups(
        self, ids: Sequence[str], streams: Collection[str], denied: list[Problem]
    ) -> dict[str, LiveGroup]:
        if not ids:
            return {}
        found = _successes(self._admin.groups(ids).items(), "see consumer group", denied)
        groups = {
            id_: LiveGroup(id_, group.state.name.capitalize(), len(group.members))
            for id_, group in found
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
        for partition, answer in self._admin.answers(self._admin.ask_end_offsets(partitions)):
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


def _successes(
    answers: Iterable[tuple[str, T | KafkaError]], what: str, denied: list[Problem]
) -> Iterator[tuple[str, T]]:
    """Yield the answers that came; what does not exist is left out, denials are collected."""
    for name, answer in answers:
        if not isinstance(answer, KafkaError):
            yield name, answer
        elif is_denial(answer):
            denied.append(not_authorized(answer, what, name))
        elif answer.code() not in _ABSENT:
            raise ProblemsError([unexpected(answer, what, name)])


def _live(description: TopicDescription) -> LiveTopic:
    return LiveTopic(
        name=description.name,
        topic_id=str(description.topic_id),
        partitions=len(description.partitions),
        replication_factor=max((len(partition.replicas) for partition in description.partitions), default=0),
    )


@attrs.frozen
class _Settings:
    """`own` are those set on each topic, `defaults` what holds where a topic sets none, for all alike."""

    own: dict[str, Mapping[str, str]] = attrs.field(factory=dict)
    defaults: dict[str, str] = attrs.field(factory=dict)

    def add(self, name: str, config: Mapping[str, ConfigEntry]) -> None:
        self.own[name] = {
            k: entry.value or "" for k, entry in config.items() if entry.source == _SET_ON_TOPIC
        }
        if not config.keys() <= self.defaults.keys():
            others = {k: entry.value for k, entry in config.items() if entry.source != _SET_ON_TOPIC}
            self.defaults.update({key: value for key, value in others.items() if value is not None})


def _number(config: Mapping[str, ConfigEntry], key: str) -> int | None:
    entry = config.get(key)
    return int(entry.value) if entry is not None and entry.value is not None else None
