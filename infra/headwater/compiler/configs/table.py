"""The table of all configs: of Kafka Streams and its clients by version, and of Headwater."""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import attrs

from headwater.compiler.configs.values import ConfigType, Value, read_value
from headwater.model.versions import KafkaStreamsVersion, release_start


class Owner(StrEnum):
    """The class of Kafka that defines a config: `StreamsConfig`, or the config class of a client."""

    STREAMS = "streams"
    CONSUMER = "consumer"
    PRODUCER = "producer"
    ADMIN = "admin"


PREFIXES: Mapping[str, Owner] = {
    "consumer.": Owner.CONSUMER,
    "main.consumer.": Owner.CONSUMER,
    "restore.consumer.": Owner.CONSUMER,
    "global.consumer.": Owner.CONSUMER,
    "producer.": Owner.PRODUCER,
    "admin.": Owner.ADMIN,
}
"""The prefixes of configs that are for one client only."""

_PARTITIONER_CONFIGS: Mapping[str, ConfigType] = {
    "static.partitioner.class": ConfigType(type="string", nonempty=True),
    "static.partitioner.initial.partitions": ConfigType(type="int", least=1),
    "static.partitioner.table": ConfigType(type="string"),
    "static.partitioner.separator": ConfigType(
        type="string", default=":", nonempty=True, form="untrimmed"
    ),  # a blank may separate
    "static.partitioner.bounds": ConfigType(type="string", nonempty=True),
}

HEADWATER_CONFIGS: Mapping[str, ConfigType] = {
    "internal.topics.setup": ConfigType(type="string", default="automatic", values=("automatic", "manual")),
    "partition.autoscaling.enabled": ConfigType(type="boolean", default="false"),
    "partition.autoscaling.timeout.ms": ConfigType(type="long", default="900000", least=0),
    **_PARTITIONER_CONFIGS,
    # The library for the JVM reads them from the configs of producers.
    **{f"producer.{key}": type_ for key, type_ in _PARTITIONER_CONFIGS.items()},
    "uncaught.exception.handler": ConfigType(type="string", nonempty=True),
}
"""The configs of KIP-698, KIP-878, KIP-287 and of `headwater run`: Kafka Streams has none of them."""

INTERNAL_CONFIGS: Mapping[str, ConfigType] = {
    "__internal.override.topic.prefix__": ConfigType(type="string", nonempty=True),
    "__enable.process.processValue.fix__": ConfigType(type="boolean", default="false", form="untrimmed"),
    "__emit.interval.ms.kstreams.windowed.aggregation__": ConfigType(
        type="long", default="1000", form="untrimmed"
    ),
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": ConfigType(
        type="long", default="1000", form="untrimmed"
    ),
}
"""Undocumented configs of `StreamsConfig.InternalConfig`, which reads them without trimming."""


@attrs.frozen
class ClientRules:
    """What `StreamsConfig` sets for its clients; a value of another type than text is None."""

    ignored: tuple[str, ...]
    ignored_by_exactly_once: tuple[str, ...]
    ignored_for_producers: tuple[str, ...]
    """With exactly once."""
    set: Mapping[str, str | None]
    set_by_exactly_once: Mapping[str, str | None]
    set_for_producers: Mapping[str, str | None]
    set_for_producers_by_exactly_once: Mapping[str, str | None]
    unsupported: Mapping[str, tuple[str, ...]]
    """Group protocol → the configs of consumers that it refuses."""


@attrs.frozen
class Period:
    """The releases with a config; None: from the first supported release, or to the last."""

    since: str | None
    until: str | None


def find_config(owner: Owner, key: str, version: KafkaStreamsVersion) -> ConfigType | None:
    """Return the type of a config of `owner` in a version, None if the version does not have it."""
    return _find_config_in_release(owner, key, version.major, version.minor)


def read_config(config: Mapping[str, str], key: str, version: KafkaStreamsVersion) -> Value | None:
    """Return the value of a config: the default if it is not set, invalid, or not in the version.

    None = there is no default.
    """
    return read_value(find_any_config(key, version), config.get(key))


def find_any_config(key: str, version: KafkaStreamsVersion) -> ConfigType | None:
    """Return the type of a config that an application may set, with or without the prefix of a client."""
    own = HEADWATER_CONFIGS.get(key) or INTERNAL_CONFIGS.get(key)
    if own is not None:
        return own
    name, owners = split_key(key)
    return next((found for owner in owners if (found := find_config(owner, name, version))), None)


def is_public(key: str) -> bool:
    """Return whether a value may be shown: a version of Kafka or Headwater has the config, no password.

    A config that is not known may contain anything, whatever its name is.
    """
    if key in HEADWATER_CONFIGS or key in INTERNAL_CONFIGS:
        return True
    name, owners = split_key(key)
    types = {row["type"] for owner in owners for row in _read_table()[owner].get(name, ())}
    return bool(types) and "password" not in types


def split_key(key: str) -> tuple[str, tuple[Owner, ...]]:
    """Return the name of a config without the prefix of a client, and who may define it."""
    for prefix, owner in PREFIXES.items():
        if key.startswith(prefix):
            return key.removeprefix(prefix), (owner,)
    return key, tuple(Owner)


@cache
def known_keys() -> frozenset[str]:
    """Return the keys of all versions that have a type, also those with the prefix of a client."""
    names = {name for owner in Owner for name in config_names(owner)}
    prefixed = (prefix + name for prefix, owner in PREFIXES.items() for name in config_names(owner))
    return frozenset((*names, *prefixed, *HEADWATER_CONFIGS, *INTERNAL_CONFIGS))


def config_names(owner: Owner) -> Iterable[str]:
    """Return the names of the configs of `owner`, of all versions."""
    names: Iterable[str] = _read_table()[owner].keys()
    return names


def find_period(owners: Iterable[Owner], name: str) -> Period | None:
    """Return the releases in which one of `owners` has a config, None if it is in no release."""
    releases = _read_table()["releases"]
    rows = [rows for owner in owners if (rows := _read_table()[owner].get(name))]
    if not rows:
        return None
    since = min(releases.index(each[0].get("since", releases[0])) for each in rows)
    until = max(releases.index(each[-1].get("until", releases[-1])) for each in rows)
    return Period(releases[since] if since else None, releases[until] if releases[until + 1 :] else None)


@cache
def client_rules(release: str) -> ClientRules:
    """Return what `StreamsConfig` of a release sets for its clients."""
    row = _in_release(_read_table()["rules"], release)
    return ClientRules(
        ignored=tuple(row["ignored"]),
        ignored_by_exactly_once=tuple(row["ignored by exactly once"]),
        ignored_for_producers=tuple(row["ignored for producers by exactly once"]),
        set=row["set"],
        set_by_exactly_once=row["set by exactly once"],
        set_for_producers=row["set for producers"],
        set_for_producers_by_exactly_once=row["set for producers by exactly once"],
        unsupported={
            protocol: tuple(row[f"unsupported by the {protocol} protocol"])
            for protocol in ("classic", "consumer")
        },
    )


@lru_cache(maxsize=4096)  # documents may contain any key
def _find_config_in_release(owner: Owner, key: str, major: int, minor: int) -> ConfigType | None:
    row = _in_release(_read_table()[owner].get(key, ()), f"{major}.{minor}")
    return _read_row(row) if row else None


def _read_row(row: Mapping[str, Any]) -> ConfigType:
    """Return the type in a row of a table."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row.items()
        if name not in ("since", "until")
    }
    return ConfigType(**fields)


def _in_release(rows: Iterable[Mapping[str, Any]], release: str) -> Mapping[str, Any]:
    """Return the row that holds for a release, empty if there is none.

    An earlier or later release than the known ones has the rows of the nearest.
    """
    releases = _read_table()["releases"]
    at = releases.index(release) if release in releases else _nearest_index(releases, release)
    for row in rows:
        first = releases.index(row["since"]) if "since" in row else 0
        last = releases.index(row["until"]) if "until" in row else len(releases) - 1
        if first <= at <= last:
            return row
    return {}


def _nearest_index(releases: Sequence[str], release: str) -> int:
    before = [known for known in releases if release_start(known) <= release_start(release)]
    return max(0, len(before) - 1)


@cache
def _read_table() -> Mapping[str, Any]:
    text = files("headwater.compiler.configs").joinpath("kafka_configs.json").read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table
