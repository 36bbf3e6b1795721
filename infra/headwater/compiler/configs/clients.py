"""The configs that each client of Kafka Streams gets: `StreamsConfig#getMainConsumerConfigs` and others.

A config without prefix is for every client that has it. One with the prefix of a client takes precedence.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property

import attrs

from headwater.compiler.configs.table import PREFIXES, ClientRules, Owner, client_rules, find_config
from headwater.compiler.configs.values import Value, read_value
from headwater.compiler.java.config_values import trim_text
from headwater.model.versions import KafkaStreamsVersion

_GROUP_PROTOCOL = "group.protocol"
_REMOVES_GROUP_PROTOCOL = KafkaStreamsVersion(4, 1, 0)
_IGNORES_FOR_EACH_CONSUMER = KafkaStreamsVersion(4, 2, 0)
"""Since then, configs that are ignored with `consumer.` are ignored with `main.consumer.`, too."""


class Client(StrEnum):
    """A client that an application creates; its value is its name in texts."""

    MAIN = "main consumer"
    RESTORE = "restore consumer"
    GLOBAL = "global consumer"
    PRODUCER = "producer"
    ADMIN = "admin client"

    @property
    def owner(self) -> Owner:
        return _OWNERS.get(self, Owner.CONSUMER)


_OWNERS = {Client.PRODUCER: Owner.PRODUCER, Client.ADMIN: Owner.ADMIN}
_OWN_PREFIXES = {
    Client.MAIN: "main.consumer.",
    Client.RESTORE: "restore.consumer.",
    Client.GLOBAL: "global.consumer.",
}
_RESOLVE_TIMEOUT = "bootstrap.resolve.timeout.ms"
"""Since 4.4, which has it, 0 for every client (`StreamsConfig#enforceSynchronousBootstrapResolution`)."""
_SET_LAST = {
    Client.MAIN: ("group.id", "partition.assignment.strategy"),
    Client.RESTORE: ("group.id", "group.instance.id", "auto.offset.reset"),
    Client.GLOBAL: ("group.id", "group.instance.id", "auto.offset.reset"),
    Client.PRODUCER: ("key.serializer", "value.serializer", "bootstrap.servers", _RESOLVE_TIMEOUT),
    Client.ADMIN: ("client.id", _RESOLVE_TIMEOUT),
}
"""What Kafka Streams sets after the configs of the user, or removes."""
_SET_LAST_FOR_CONSUMERS = ("key.deserializer", "value.deserializer", "bootstrap.servers", _RESOLVE_TIMEOUT)
_MEMBER = "group.instance.id"
THREAD_SUFFIX = "-0"
"""What Kafka Streams appends to `group.instance.id` for its first stream thread."""
_CREATES_NO_TOPICS = "allow.auto.create.topics"


@attrs.frozen
class Given:
    """A value, and the key of the application's config that sets it; None = Kafka Streams sets it."""

    key: str | None
    text: str


ClientConfig = Mapping[str, Given]


def client_configs(config: Mapping[str, str], version: KafkaStreamsVersion) -> Mapping[Client, ClientConfig]:
    """Return what each client gets, by the names of the client's configs."""
    by_prefix = _by_prefix(config)
    rules = client_rules(version.release)
    exactly_once = is_exactly_once(config)
    consumers = _common_consumer(by_prefix, rules, version, exactly_once=exactly_once)
    return {
        **{
            client: _consumer_config(client, consumers, by_prefix.get(prefix, {}), rules, version)
            for client, prefix in _OWN_PREFIXES.items()
        },
        Client.PRODUCER: _producer_config(by_prefix, rules, version, exactly_once=exactly_once),
        Client.ADMIN: _remove_configs(
            _provided_configs(by_prefix, Owner.ADMIN, "admin.", version), _SET_LAST[Client.ADMIN]
        ),
    }


@attrs.frozen(slots=False)  # for the cached property
class StartedApplication:
    """What Kafka Streams and its clients read when an application starts."""

    config: Mapping[str, str]
    clients: Mapping[Client, ClientConfig]
    version: KafkaStreamsVersion

    @cached_property
    def exactly_once(self) -> bool:
        return is_exactly_once(self.config)

    def streams_value(self, key: str) -> Value | None:
        """Return the value that `StreamsConfig` reads, or the default."""
        return read_value(find_config(Owner.STREAMS, key, self.version), self.config.get(key))

    def client_value(self, client: Client, name: str) -> Value | None:
        """Return the value that a client reads, or the default."""
        given = self.clients[client].get(name)
        known = find_config(client.owner, name, self.version)
        return read_value(known, None if given is None else given.text)

    def client_number(self, client: Client, name: str) -> int:
        found = self.client_value(client, name)
        return found if isinstance(found, int) else 0

    def config_key(self, client: Client, *names: str) -> str | None:
        """Return the key of the document that sets one of the configs of a client."""
        given = self.clients[client]
        return next((found.key for name in names if (found := given.get(name)) and found.key), None)


def is_exactly_once(config: Mapping[str, str]) -> bool:
    """Return whether `processing.guarantee` is one of the exactly-once guarantees."""
    return trim_text(config.get("processing.guarantee", "")).startswith("exactly_once")


def _by_prefix(config: Mapping[str, str]) -> Mapping[str, dict[str, Given]]:
    """Return prefix → name without it → value; the prefix of the others is empty."""
    found: dict[str, dict[str, Given]] = {"": {}}
    for key, text in config.items():
        given = Given(key, text)
        found[""][key] = given
        for prefix in PREFIXES:
            if key.startswith(prefix):
                found.setdefault(prefix, {})[key.removeprefix(prefix)] = given
    return found


def _provided_configs(
    by_prefix: Mapping[str, dict[str, Given]], owner: Owner, prefix: str, version: KafkaStreamsVersion
) -> dict[str, Given]:
    """`StreamsConfig#getClientPropsWithPrefix`."""
    shared = {
        name: given for name, given in by_prefix[""].items() if find_config(owner, name, version) is not None
    }
    return {**shared, **by_prefix.get(prefix, {})}


def _common_consumer(
    by_prefix: Mapping[str, dict[str, Given]],
    rules: ClientRules,
    version: KafkaStreamsVersion,
    *,
    exactly_once: bool,
) -> dict[str, Given]:
    """`StreamsConfig#getCommonConsumerConfigs`."""
    provided = _provided_configs(by_prefix, Owner.CONSUMER, "consumer.", version)
    if version >= _REMOVES_GROUP_PROTOCOL:
        provided.pop(_GROUP_PROTOCOL, None)
    provided = _drop_ignored(provided, rules.ignored, rules.set)
    if exactly_once:
        provided = _drop_ignored(provided, rules.ignored_by_exactly_once, rules.set_by_exactly_once)
    return {**_preset_configs(rules.set_by_exactly_once if exactly_once else rules.set), **provided}


def _consumer_config(
    client: Client,
    common: Mapping[str, Given],
    own: Mapping[str, Given],
    rules: ClientRules,
    version: KafkaStreamsVersion,
) -> ClientConfig:
    set_last = (*_SET_LAST[client], *_SET_LAST_FOR_CONSUMERS, "client.id")
    if version >= _IGNORES_FOR_EACH_CONSUMER:
        own = _drop_ignored(own, rules.ignored, rules.set)
    elif client is Client.MAIN:
        set_last = (*set_last, _CREATES_NO_TOPICS)
    configs = {**common, **own}
    member = configs.get(_MEMBER)
    if member is not None:
        configs[_MEMBER] = Given(member.key, member.text + THREAD_SUFFIX)
    return _remove_configs(configs, set_last)


def _producer_config(
    by_prefix: Mapping[str, dict[str, Given]],
    rules: ClientRules,
    version: KafkaStreamsVersion,
    *,
    exactly_once: bool,
) -> ClientConfig:
    provided = _provided_configs(by_prefix, Owner.PRODUCER, "producer.", version)
    preset = rules.set_for_producers
    if exactly_once:
        preset = rules.set_for_producers_by_exactly_once
        # 5 requests in flight are no config of Kafka Streams: a user may set fewer
        ignored = [
            name for name in rules.ignored_for_producers if name in preset or name == "transactional.id"
        ]
        provided = _drop_ignored(provided, ignored, preset)
    return _remove_configs(
        {**_preset_configs(preset), **provided}, (*_SET_LAST[Client.PRODUCER], "client.id")
    )


def _drop_ignored(
    provided: Mapping[str, Given], ignored: Iterable[str], preset: Mapping[str, str | None]
) -> dict[str, Given]:
    """Return the configs without those that Kafka Streams ignores, because it sets another value."""
    return {
        name: given
        for name, given in provided.items()
        if name not in ignored or given.text == preset.get(name)
    }


def _preset_configs(preset: Mapping[str, str | None]) -> dict[str, Given]:
    return {name: Given(None, text) for name, text in preset.items() if text is not None}


def _remove_configs(config: Mapping[str, Given], names: Iterable[str]) -> ClientConfig:
    return {name: given for name, given in config.items() if name not in names}
