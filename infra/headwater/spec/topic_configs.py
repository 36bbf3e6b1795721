"""Kafka's own table of topic configs, and problems for values that a broker refuses.

`kafka_topic_configs.json` is generated from Kafka's `LogConfig`; a test compares the two.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import attrs

from headwater.compiler.configs.values import ConfigType, parse_value
from headwater.compiler.configs.values import allowed_values as describe_values
from headwater.compiler.java.config_values import double_text
from headwater.model.cluster_profiles import RELIED_ON
from headwater.model.policies import matches_any
from headwater.model.problems import Problem, ProblemCode, shorten_text
from headwater.spec.locations import MAX_PROBLEMS, PathPart, RawDocument, mapping_of
from headwater.spec.phrases import nearest_word
from headwater.spec.scalars import config_text


@cache
def topic_configs() -> Mapping[str, ConfigType]:
    """Return topic config name → its type and limits, as in the newest supported release of Kafka."""
    text = files("headwater.spec").joinpath("kafka_topic_configs.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _config_type(**row) for name, row in rows.items()}


def _config_type(values: Sequence[str] = (), extra: Sequence[int] = (), **row: Any) -> ConfigType:  # noqa: ANN401 - of JSON
    return ConfigType(values=tuple(values), extra=tuple(extra), **row)


def allowed_values(name: str, value: str) -> str | None:
    """Return the values that the config `name` allows if `value` is not one of them, else None.

    Source: `LogConfig#validate`, which parses each value by its type and then checks it.
    """
    config = topic_configs()[name]
    return None if parse_value(config, value) is not None else describe_values(config, value)


def is_valid(name: str, value: str) -> bool:
    """Return whether a broker of the newest supported release accepts this config."""
    return name in topic_configs() and allowed_values(name, value) is None


def broker_text(name: str, value: str) -> str:
    """Return the value as a broker returns it, which parses it by its type: `1.0` for `1`, `true` for `TRUE`.

    A value in another form would differ from the broker's in every run, and Pulumi's provider would wait
    until a timeout for the two to be equal. What the brokers may refuse is returned unchanged.

    Source: `ConfigDef#parseType` and `ConfigDef#convertToString`.
    """
    read = parse_value(topic_configs()[name], value) if name in topic_configs() else None
    match read:
        case None:
            return value
        case bool():
            return str(read).lower()
        case float():
            return double_text(read)
        case list():
            return ",".join(read)
    return str(read)


_PREFIX = "topic."
_OTHER_BROKERS = "If your brokers accept it, list its name in `setup.allowTopicConfigs`."
_WHY = "The brokers refuse a topic with it, so `pulumi up` would fail halfway."

Path = tuple[PathPart, ...]


@attrs.frozen
class _Given:
    """A topic config in the document: `shown` is its key there, `name` its name for the brokers."""

    path: Path
    shown: str
    name: str
    value: object


def topic_config_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return problems for unknown names and refused values. What does not fit the schema is skipped."""
    data = raw.data
    if not isinstance(data, dict):
        return ()
    allowed = _allowed_by(data)
    return tuple(
        islice(
            (problem for given in _given_configs(data) for problem in _check_config(raw, given, allowed)),
            MAX_PROBLEMS,
        )
    )


def _allowed_by(data: Mapping[str, Any]) -> tuple[str, ...]:
    names = mapping_of(mapping_of(data.get("application")).get("setup")).get("allowTopicConfigs")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _given_configs(data: Mapping[str, Any]) -> Iterator[_Given]:
    config = mapping_of(mapping_of(data.get("application")).get("config"))
    for key, value in config.items():
        if key.startswith(_PREFIX):
            yield _Given(("application", "config", key), key, key.removeprefix(_PREFIX), value)
    for path, configs in _config_mappings(data):
        for key, value in configs.items():
            yield _Given((*path, key), key, key, value)


def _config_mappings(data: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the mappings of topic configs by Kafka's names.

    Configs of an observed application are not checked: the cluster has them.
    """
    for topic, options in mapping_of(data.get("topics")).items():
        yield ("topics", topic, "config"), mapping_of(mapping_of(options).get("config"))
    yield from _logging_mappings(data.get("topology"), ("topology",))
    for section in ("describe", "exported"):
        for store, options in mapping_of(mapping_of(data.get(section)).get("stores")).items():
            yield (section, "stores", store, "overrides"), mapping_of(mapping_of(options).get("overrides"))


def _logging_mappings(part: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _logging_mappings(item, (*path, index))
    elif isinstance(part, dict):
        for key, inner in part.items():
            if key == "logging":
                yield (*path, key), mapping_of(inner)
            else:
                yield from _logging_mappings(inner, (*path, key))


def _check_config(raw: RawDocument, given: _Given, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if given.value is None and given.shown != given.name and given.name in RELIED_ON:
        yield _relied_on(raw, given)
    if matches_any(given.name, allowed):
        return
    if given.name not in topic_configs():
        yield _unknown_config(raw, given)
    elif isinstance(given.value, str | int | float):
        text = config_text(given.value)
        values = allowed_values(given.name, text)
        if values is not None:
            yield _refused_value(raw, given, text, values)


def _relied_on(raw: RawDocument, given: _Given) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Topic config `{given.name}` cannot be absent.",
        expected="a value, or no such key: Kafka Streams then chooses the value",
        found="`null`",
        why="It decides which records Kafka removes: by the brokers' default, state or records may be lost.",
        fix=f"Remove `{given.shown}`, or set it to a value.",
        location=raw.location(given.path),
    )


def _unknown_config(raw: RawDocument, given: _Given) -> Problem:
    meant = nearest_word(given.name, topic_configs())
    prefix = given.shown.removesuffix(given.name)
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Kafka has no topic config `{shorten_text(given.name)}`.",
        expected=f"`{prefix}{meant}`" if meant else "a topic config of Kafka",
        found=f"`{shorten_text(given.shown)}`",
        why=_WHY,
        fix=(f"Did you mean `{prefix}{meant}`? " if meant else "Correct or remove it. ") + _OTHER_BROKERS,
        location=raw.location(given.path, at_key=True),
    )


def _refused_value(raw: RawDocument, given: _Given, text: str, values: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Topic config `{given.name}` cannot be {f'`{shorten_text(text)}`' if text else 'empty'}.",
        expected=values,
        found=f"`{shorten_text(text)}`" if text else "empty text",
        why=_WHY,
        fix=f"Set `{given.shown}` to {values}. {_OTHER_BROKERS}",
        location=raw.location(given.path),
    )
