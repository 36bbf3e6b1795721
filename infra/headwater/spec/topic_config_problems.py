"""Problems of topic configs that brokers refuse, with their locations in the document."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from headwater.model.cluster_profiles import RELIED_ON
from headwater.model.problems import Problem, ProblemCode
from headwater.spec.limits import MAX_PROBLEMS
from headwater.spec.locations import PathPart, RawDocument
from headwater.spec.phrases import nearest, shorten
from headwater.spec.scalars import config_text
from headwater.spec.topic_configs import allowed_values, is_allowed, topic_configs

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
    allowed = _allowed(data)
    return tuple(
        islice((problem for given in _given(data) for problem in _check(raw, given, allowed)), MAX_PROBLEMS)
    )


def _allowed(data: Mapping[str, Any]) -> tuple[str, ...]:
    names = _mapping(_mapping(data.get("application")).get("setup")).get("allowTopicConfigs")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _given(data: Mapping[str, Any]) -> Iterator[_Given]:
    config = _mapping(_mapping(data.get("application")).get("config"))
    for key, value in config.items():
        if key.startswith(_PREFIX):
            yield _Given(("application", "config", key), key, key.removeprefix(_PREFIX), value)
    for path, configs in _mappings(data):
        for key, value in configs.items():
            yield _Given((*path, key), key, key, value)


def _mappings(data: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the mappings of topic configs by Kafka's names.

    Those of an observed application are not checked: the cluster has them.
    """
    for topic, options in _mapping(data.get("topics")).items():
        yield ("topics", topic, "config"), _mapping(_mapping(options).get("config"))
    yield from _logging(data.get("topology"), ("topology",))
    for section in ("describe", "exported"):
        for store, options in _mapping(_mapping(data.get(section)).get("stores")).items():
            yield (section, "stores", store, "overrides"), _mapping(_mapping(options).get("overrides"))


def _logging(part: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _logging(item, (*path, index))
    elif isinstance(part, dict):
        for key, inner in part.items():
            if key == "logging":
                yield (*path, key), _mapping(inner)
            else:
                yield from _logging(inner, (*path, key))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _check(raw: RawDocument, given: _Given, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if given.value is None and given.shown != given.name and given.name in RELIED_ON:
        yield _relied_on(raw, given)
    if is_allowed(given.name, allowed):
        return
    if given.name not in topic_configs():
        yield _unknown(raw, given)
    elif isinstance(given.value, str | int | float):
        text = config_text(given.value)
        values = allowed_values(given.name, text)
        if values is not None:
            yield _refused(raw, given, text, values)


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


def _unknown(raw: RawDocument, given: _Given) -> Problem:
    meant = nearest(given.name, topic_configs())
    prefix = given.shown.removesuffix(given.name)
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Kafka has no topic config `{shorten(given.name)}`.",
        expected=f"`{prefix}{meant}`" if meant else "a topic config of Kafka",
        found=f"`{shorten(given.shown)}`",
        why=_WHY,
        fix=(f"Did you mean `{prefix}{meant}`? " if meant else "Correct or remove it. ") + _OTHER_BROKERS,
        location=raw.location(given.path, at_key=True),
    )


def _refused(raw: RawDocument, given: _Given, text: str, values: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Topic config `{given.name}` cannot be {f'`{shorten(text)}`' if text else 'empty'}.",
        expected=values,
        found=f"`{shorten(text)}`" if text else "empty text",
        why=_WHY,
        fix=f"Set `{given.shown}` to {values}. {_OTHER_BROKERS}",
        location=raw.location(given.path),
    )
