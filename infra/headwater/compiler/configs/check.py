"""Check all configs of an application as the constructors of Kafka Streams and its clients do."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache

from headwater.compiler.configs.clients import Client, ClientConfig, StartedApplication, client_configs
from headwater.compiler.configs.combinations import IN_FLIGHT, find_combinations
from headwater.compiler.configs.table import (
    HEADWATER_CONFIGS,
    INTERNAL_CONFIGS,
    Owner,
    find_config,
    known_keys,
)
from headwater.compiler.configs.values import ConfigType, Refusal, allowed_values, name_exception, parse_value
from headwater.model.problems import Problem
from headwater.model.topology import Application
from headwater.model.versions import KafkaStreamsVersion

_REPLICATION_FACTOR = "replication.factor"
_CREATABLE = ConfigType(type="int", least=1, most=2**15 - 1, extra=(-1,))
"""`StreamsConfig` accepts every number, but with others no topic can be created."""
_NOT_CREATED = "Kafka Streams cannot create an internal topic with it: the application does not start."
_OWN = "It decides what happens to topics and tasks, so there is no default for an unknown value."
_READ_AS_FALSE = "Kafka Streams reads every other value as `false`, without a message."
_SEPARATORS = re.compile(r"(?<=[0-9])[_,' \u00a0](?=[0-9])")
_CHECKED_PREFIXES = ("client.tag.", "topic.")
"""Prefixes of keys without an entry in the table that combinations refer to, or that prefix one."""
_LONGEST_VALUE, _LIKENESS = 80, 0.7
_PROVIDERS = "config.providers"


def config_problems(application: Application) -> tuple[Problem, ...]:
    """Return a problem for each config that is refused."""
    return tuple(
        refusal.to_problem().located(
            application=application.id, location=application.locate_config(refusal.key)
        )
        for refusal in find_refusals(application.config, application.kafka_streams)
    )


def find_refusals(config: Mapping[str, str], version: KafkaStreamsVersion) -> tuple[Refusal, ...]:
    """Return what is refused: first single values, each key once, then combinations of values.

    Whether a class exists is not checked: only the application has its classes. A value that contains a
    variable of a `ConfigProvider` is not known here, and accepted.
    """
    return _find_refusals(tuple(config.items()), version) if config else ()


@lru_cache(maxsize=1024)  # a document is checked when it is read, and for the version that it runs
def _find_refusals(items: tuple[tuple[str, str], ...], version: KafkaStreamsVersion) -> tuple[Refusal, ...]:
    return tuple(_check_all(dict(items), version))


def _check_all(config: Mapping[str, str], version: KafkaStreamsVersion) -> Iterator[Refusal]:
    variables = _provider_variables(config)
    known = {
        key: text
        for key, text in config.items()
        if (key in known_keys() or key.startswith(_CHECKED_PREFIXES) or key.endswith(IN_FLIGHT))
        and not any(part in text for part in variables)
    }
    refused: set[str] = set()
    clients = client_configs(known, version)
    for refusal in (*_check_streams(known, version), *_check_clients(clients, version)):
        if refusal.key not in refused:
            refused.add(refusal.key)
            yield refusal
    application = StartedApplication(known, clients, version)
    yield from (each for each in find_combinations(application) if each.key not in refused)


def _provider_variables(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return how variables begin that `AbstractConfig` replaces: `${file:`."""
    return tuple(
        f"${{{provider}:"
        for key, text in config.items()
        if key.endswith(_PROVIDERS)
        for provider in text.split(",")
        if f"{key}.{provider}.class" in config
    )


def _check_streams(config: Mapping[str, str], version: KafkaStreamsVersion) -> Iterator[Refusal]:
    for key, text in config.items():
        if known := find_config(Owner.STREAMS, key, version):
            yield from _check_value(key, text, known, name_exception("ConfigException"))
        elif known := HEADWATER_CONFIGS.get(key):
            yield from _check_value(key, text, known, _OWN)
        elif known := INTERNAL_CONFIGS.get(key):
            why = _READ_AS_FALSE if known.type == "boolean" else name_exception("NumberFormatException")
            yield from _check_value(key, text, known, why)
    if _REPLICATION_FACTOR in config:
        yield from _check_value(_REPLICATION_FACTOR, config[_REPLICATION_FACTOR], _CREATABLE, _NOT_CREATED)


def _check_clients(clients: Mapping[Client, ClientConfig], version: KafkaStreamsVersion) -> Iterator[Refusal]:
    """Yield the refused values of clients, also of the global consumer: a global table may come."""
    for client, configs in clients.items():
        for name, given in configs.items():
            known = None if given.key is None else find_config(client.owner, name, version)
            if given.key is not None and known is not None:
                why = name_exception("ConfigException", f"The {client}")
                yield from _check_value(given.key, given.text, known, why)


def _check_value(key: str, text: str, known: ConfigType, why: str) -> Iterator[Refusal]:
    if parse_value(known, text) is None:
        yield Refusal.of_value(
            key, text, allowed_values(known, text), hint=_probable_value(known, text), why=why
        )


def _probable_value(known: ConfigType, text: str) -> str:
    """Return the valid value that a text probably means, empty if there is none."""
    if known.values:
        by_lower = {word.lower(): word for word in known.values}
        near = get_close_matches(text.strip().lower()[:_LONGEST_VALUE], by_lower, n=1, cutoff=_LIKENESS)
        return by_lower[near[0]] if near else ""
    if known.type not in ("short", "int", "long"):
        return ""
    without = _SEPARATORS.sub("", text.strip()).removesuffix(".0")
    return without if without != text and parse_value(known, without) is not None else ""
