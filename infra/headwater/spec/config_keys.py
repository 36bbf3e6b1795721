"""Problems of the application's configs: values that Kafka Streams refuses, and keys that it does not know.

Configs of internal topics (`topic.`) are checked by `topic_config_problems`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice

from headwater.compiler.configs.check import find_refusals
from headwater.compiler.configs.table import HEADWATER_CONFIGS, PREFIXES, Owner, config_names, split_key
from headwater.model.problems import Problem, ProblemCode, Severity, shorten_text
from headwater.model.versions import SUPPORTED
from headwater.spec.locations import MAX_PROBLEMS, RawDocument, mapping_of
from headwater.spec.phrases import nearest
from headwater.spec.scalars import config_text
from headwater.spec.topic_configs import topic_configs
from headwater.spec.versions import declared_version, is_version, reports_value

_TOPIC = "topic."
_FREE = (_TOPIC, "client.tag.", "metrics.context.", "__", "internal.")
"""Prefixes of keys with free names, of keys that are checked elsewhere, and of Kafka's undocumented keys."""
_REGISTRY = "schema.registry.url"
"""`headwater run` and the serdes of schema registries read it; its values are not checked."""


def config_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return errors for refused values, warnings about misspelled keys, hints about other unknown keys."""
    return tuple(islice(chain(_refused_values(raw), _unknown_keys(raw)), MAX_PROBLEMS))


def _refused_values(raw: RawDocument) -> Iterator[Problem]:
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    if not isinstance(application, dict) or not is_version(application.get("kafkaStreams")):
        return
    version, config = declared_version(application), _config_texts(application.get("config"))
    if version is None:
        return
    for refusal in find_refusals(config, version):
        is_certain = application.get("kafkaStreams") is not None or _is_always_refused(refusal.key, config)
        if is_certain and not reports_value(refusal.key, config.get(refusal.key, ""), version):
            path = ("application", "config", refusal.key)
            yield refusal.to_problem().located(location=raw.location(path))


def _is_always_refused(key: str, config: Mapping[str, str]) -> bool:
    """Return whether every version refuses a config of an application whose version is in its setup record.

    The compiler checks it for the version that the application runs.
    """
    return all(any(refusal.key == key for refusal in find_refusals(config, each)) for each in SUPPORTED)


def _config_texts(config: object) -> Mapping[str, str]:
    """Return the values as in a properties file, without those that do not fit the schema."""
    return {
        key: config_text(value)
        for key, value in mapping_of(config).items()
        if isinstance(value, str | int | float)
    }


def _unknown_keys(raw: RawDocument) -> Iterator[Problem]:
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    config = application.get("config") if isinstance(application, dict) else None
    if not (isinstance(application, dict) and isinstance(config, dict)):
        return
    for key in config:
        if key == "application.id" and config[key] != application.get("id"):
            yield _other_id(raw, key, str(config[key]), str(application.get("id")))
        elif not _is_known(key):
            yield _unknown_key(raw, key)


def _is_known(key: str) -> bool:
    name, owners = split_key(key)
    is_own = key in _own_keys() or key == _REGISTRY
    return is_own or key.startswith(_FREE) or any(name in config_names(owner) for owner in owners)


def _unknown_key(raw: RawDocument, key: str) -> Problem:
    meant = nearest(key, _similar_keys(key))
    if meant is None:
        return Problem(
            code=ProblemCode.CONFIG_HAS_NO_EFFECT,
            summary=f"Kafka Streams has no config `{shorten_text(key)}`.",
            expected="a key of Kafka Streams or of its clients",
            found=f"`{shorten_text(key)}`",
            why="Only your own class (an interceptor, a serde, a handler) can read it.",
            fix="Keep it if such a class uses it. Otherwise remove it.",
            location=raw.location(("application", "config", key), at_key=True),
            severity=Severity.INFO,
        )
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"Kafka Streams has no config `{shorten_text(key)}`.",
        expected=f"`{meant}`",
        found=f"`{shorten_text(key)}`",
        why="Kafka Streams ignores unknown keys, so it would have no effect.",
        fix=f"Did you mean `{meant}`?",
        location=raw.location(("application", "config", key), at_key=True),
        severity=Severity.WARNING,
    )


def _other_id(raw: RawDocument, key: str, found: str, expected: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary="`application.id` contradicts the application's `id`.",
        expected=f"`{expected}`",
        found=f"`{shorten_text(found)}`",
        why="The names of all internal topics begin with the application id, so there can be only one.",
        fix="Remove `application.id` from `config`.",
        location=raw.location(("application", "config", key)),
    )


@cache
def _own_keys() -> frozenset[str]:
    return frozenset(HEADWATER_CONFIGS)


def _similar_keys(key: str) -> Iterator[str]:
    """Yield the known keys that a misspelled key may mean: with its prefix if it has one of a client's."""
    name, owners = split_key(key)
    prefix = key.removesuffix(name)
    if prefix:
        yield from (prefix + known for known in config_names(owners[0]))
        return
    yield from (*HEADWATER_CONFIGS, _REGISTRY)
    known = dict.fromkeys(known for owner in Owner for known in config_names(owner))
    yield from known
    yield from (_TOPIC + known for known in topic_configs())
    for prefix, owner in PREFIXES.items():  # a misspelled prefix
        yield from (prefix + known for known in config_names(owner) if key.endswith(known))
