"""Warnings about config keys that Kafka Streams does not know, with the nearest known key.

Keys of internal topics (`topic.`) are checked by `topic_config_problems`.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice

from infra.compiler.version_differences import NEW_CONFIGS
from infra.model.problems import Problem, ProblemCode, Severity
from infra.spec.limits import MAX_PROBLEMS
from infra.spec.locations import RawDocument
from infra.spec.phrases import nearest, shorten
from infra.spec.schema import document_schema
from infra.spec.topic_configs import topic_configs

_CLIENTS = {
    "consumer.": "consumer",
    "main.consumer.": "consumer",
    "restore.consumer.": "consumer",
    "global.consumer.": "consumer",
    "producer.": "producer",
    "admin.": "admin",
}
_FREE = ("topic.", "client.tag.", "metrics.context.", "__", "internal.")
"""Prefixes of keys with free names, of keys that are checked elsewhere, and of Kafka's undocumented keys."""


def config_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return warnings about keys that resemble a known one, and hints about other unknown keys."""
    return tuple(islice(_problems(raw), MAX_PROBLEMS))


def _problems(raw: RawDocument) -> Iterator[Problem]:
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    config = application.get("config") if isinstance(application, dict) else None
    if not (isinstance(application, dict) and isinstance(config, dict)):
        return
    for key in config:
        if key == "application.id" and config[key] != application.get("id"):
            yield _other_id(raw, key, str(config[key]), str(application.get("id")))
        elif not _is_known(key):
            yield _unknown(raw, key)


def _is_known(key: str) -> bool:
    return key in _keys() or key.startswith(_FREE)


def _unknown(raw: RawDocument, key: str) -> Problem:
    meant = nearest(key, _keys())
    if meant is None:
        return Problem(
            code=ProblemCode.CONFIG_HAS_NO_EFFECT,
            summary=f"Kafka Streams has no config `{shorten(key)}`.",
            expected="a key of Kafka Streams or of its clients",
            found=f"`{shorten(key)}`",
            why="Only your own class (an interceptor, a serde, a handler) can read it.",
            fix="Keep it if such a class uses it. Otherwise remove it.",
            location=raw.location(("application", "config", key), at_key=True),
            severity=Severity.INFO,
        )
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"Kafka Streams has no config `{shorten(key)}`.",
        expected=f"`{meant}`",
        found=f"`{shorten(key)}`",
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
        found=f"`{shorten(found)}`",
        why="The names of all internal topics begin with the application id, so there can be only one.",
        fix="Remove `application.id` from `config`.",
        location=raw.location(("application", "config", key)),
    )


@cache
def _keys() -> frozenset[str]:
    """Return all known keys: of Kafka Streams, of its clients (also with prefix), of topics, and our own."""
    names: dict[str, list[str]] = json.loads(
        files("infra.spec").joinpath("kafka_config_names.json").read_text(encoding="utf-8")
    )
    shared = names["every client"]
    known = {
        *names["streams"],
        *NEW_CONFIGS,
        *shared,
        *names["consumer"],
        *names["producer"],
        *names["admin"],
    }
    known.update(prefix + name for prefix, client in _CLIENTS.items() for name in (*shared, *names[client]))
    known.update("topic." + name for name in topic_configs())
    known.update(document_schema()["$defs"]["config"]["properties"])
    return frozenset(known)
