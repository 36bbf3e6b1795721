"""Passes that check topic names, unused stores, retention and settings without effect."""

import re
from collections.abc import Iterable, Iterator, Mapping

from headwater.compiler.compilation import Compilation
from headwater.compiler.internal_topics import changelog_config
from headwater.model.compiled import InternalTopic
from headwater.model.nodes import ChangelogKind, ProcessorNode
from headwater.model.problems import Location, Problem, ProblemCode, Severity, errors
from headwater.model.topology import Sink

_LONGEST_NAME = 249
_LONGEST_MS = 2**63 - 1
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_names(compilation: Compilation) -> Compilation:
    """Check the names of internal topics (`Topic#validate`); report an invalid application id once."""
    prefix = compilation.naming.prefix
    topics = {topic: details.at for topic, details in compilation.repartition.items()}
    topics |= {
        topic: store.at
        for group in compilation.groups
        for topic, store in group.changelogs.items()
        if store.changelog_topic is None
    }
    if topics and not _LEGAL.fullmatch(prefix):
        return compilation.with_problems(
            [_invalid_topic_name(min(topics), f"the application id {prefix!r} has invalid characters", None)]
        )
    problems = []
    for topic, at in sorted(topics.items()):
        if not _LEGAL.fullmatch(topic):
            problems.append(_invalid_topic_name(topic, "it has invalid characters", at))
        elif len(topic) > _LONGEST_NAME:
            problems.append(_invalid_topic_name(topic, f"it has {len(topic)} characters", at))
    return compilation.with_problems(problems)


def check_stores(compilation: Compilation) -> Compilation:
    """Warn of stores that no processor uses: Kafka Streams neither opens them nor creates a changelog.

    A topology with errors is not complete: a store may be unused only because its processor was refused.
    """
    if errors(compilation.topology.problems):
        return compilation
    used = {
        store
        for node in compilation.topology.nodes
        if isinstance(node, ProcessorNode)
        for store in node.stores
    }
    problems = [
        Problem(
            code=ProblemCode.UNUSED_STORE,
            summary=f"No processor uses the store {store.name}.",
            node=store.name,
            expected="a processor connected to it",
            found="none",
            why="Kafka Streams ignores the store: it is never opened and gets no changelog topic.",
            fix="Connect it to a processor, or remove it.",
            location=store.at,
            severity=Severity.WARNING,
        )
        for store in compilation.topology.stores
        if store.name not in used and not store.is_global
    ]
    return compilation.with_problems(problems)


def check_retention(compilation: Compilation) -> Compilation:
    """Check that the retention of each store, a sum of durations, fits into a Java `long`."""
    problems = [
        Problem(
            code=ProblemCode.INVALID_TOPOLOGY,
            summary=f"Store {store.name} has a retention that does not fit into a Java long (milliseconds).",
            node=store.name,
            expected=f"window, gap or difference and grace of at most {_LONGEST_MS} ms together",
            found=f"{store.base_ms} ms",
            why="Kafka Streams throws IllegalArgumentException: the sum turns negative.",
            fix="Shorten the window or its grace.",
            location=store.at,
        )
        for store in compilation.topology.stores
        if store.base_ms is not None and store.base_ms > _LONGEST_MS
    ]
    return compilation.with_problems(problems)


def check_computed_settings(compilation: Compilation) -> Compilation:
    """Warn of `topic.` configs that Kafka Streams overrides with a computed value (facts 5.1)."""
    config = compilation.config
    problems = []
    for key, kinds in _COMPUTED.items():
        given = config.topic_overrides.get(key)
        if given is None:
            continue
        passed_by = {
            store.name: computed
            for group in compilation.groups
            for store in group.changelogs.values()
            if store.kind in kinds and store.changelog_topic is None
            for computed in [
                changelog_config(store, config.topic_overrides, config.additional_retention_ms)[key]
            ]
            if computed != given and key not in store.overrides
        }
        if passed_by:
            problems.append(_computed_setting(key, given, passed_by))
    return compilation.with_problems(problems)


def compaction_lag_problems(topics: Iterable[InternalTopic], sinks: Iterable[Sink]) -> Iterator[Problem]:
    """Yield problems of topics whose smallest compaction lag is above the largest (`LogConfig#validate`).

    The limits of single settings are checked where a document is read.
    """
    located: list[tuple[str, Mapping[str, str], Location | None]] = [
        *((topic.name, topic.config, topic.at) for topic in topics),
        *((sink.topic, sink.config, None) for sink in sinks),
    ]
    for name, config, at in located:
        least, most = (config.get(key, "") for key in ("min.compaction.lag.ms", "max.compaction.lag.ms"))
        if least.strip().isdecimal() and most.strip().isdecimal() and int(least) > int(most):
            yield _lags_conflict(name, least, most, at)


def _lags_conflict(topic: str, least: str, most: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Topic {topic} has a min.compaction.lag.ms above its max.compaction.lag.ms.",
        topic=topic,
        expected=f"max.compaction.lag.ms of at least {least}",
        found=most,
        why="The brokers refuse a topic with it, so `pulumi up` would fail halfway.",
        fix="Raise max.compaction.lag.ms. For a versioned store, the smallest lag is its history retention "
        "and one day.",
        location=at,
    )


def _computed_setting(key: str, given: str, stores: Mapping[str, str]) -> Problem:
    kept = sorted(stores.items())
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"topic.{key} has no effect on the changelog{'s' if len(kept) > 1 else ''} of "
        f"{', '.join(name for name, _ in kept)}.",
        expected=f"{key} {given}",
        found=", ".join(f"{key} {value} ({name})" for name, value in kept),
        why=(
            "Kafka Streams computes this setting for windowed and versioned stores, and the computed "
            "value takes precedence."
        )
        + _PURGED[key],
        fix=_INSTEAD[key],
        severity=Severity.WARNING,
    )


_COMPUTED = {
    "retention.ms": (ChangelogKind.WINDOWED, ChangelogKind.WINDOWED_DUPLICATES),
    "min.compaction.lag.ms": (ChangelogKind.VERSIONED,),
}
_PURGED = {
    "retention.ms": " The setting does apply to repartition topics, which lose records that are older.",
    "min.compaction.lag.ms": "",
}
_INSTEAD = {
    "retention.ms": "Remove it. Set `retention` of the store, "
    "`windowstore.changelog.additional.retention.ms`, or the store's own `logging: {retention.ms: …}`.",
    "min.compaction.lag.ms": "Remove it. Set the store's history retention, or its own "
    "`logging: {min.compaction.lag.ms: …}`.",
}


def _invalid_topic_name(topic: str, reason: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_NAME,
        summary=f"{topic} is not a valid topic name: {reason}.",
        topic=topic,
        expected=f"at most {_LONGEST_NAME} characters: letters, digits, '.', '_' and '-'",
        found=reason,
        why="Kafka Streams throws InvalidTopicException when it derives the name.",
        fix="Shorten or correct the application id, the operator's name or the store's name.",
        location=at,
    )
