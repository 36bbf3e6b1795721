"""Passes that check topic names, unused stores, retention and settings without effect."""

import re
from collections.abc import Iterable, Iterator, Mapping

from headwater.compiler.compilation import Compilation
from headwater.compiler.internal_topics import changelog_config
from headwater.compiler.messages import LONGEST_NAME, computed_setting, invalid_topic_name, lags_conflict
from headwater.model.compiled import InternalTopic
from headwater.model.nodes import ChangelogKind, ProcessorNode
from headwater.model.problems import Location, Problem, ProblemCode, Severity, errors
from headwater.model.topology import Sink

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
            [invalid_topic_name(min(topics), f"the application id {prefix!r} has invalid characters", None)]
        )
    problems = []
    for topic, at in sorted(topics.items()):
        if not _LEGAL.fullmatch(topic):
            problems.append(invalid_topic_name(topic, "it has invalid characters", at))
        elif len(topic) > LONGEST_NAME:
            problems.append(invalid_topic_name(topic, f"it has {len(topic)} characters", at))
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
            problems.append(computed_setting(key, given, passed_by))
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
            yield lags_conflict(name, least, most, at)


_COMPUTED = {
    "retention.ms": (ChangelogKind.WINDOWED, ChangelogKind.WINDOWED_DUPLICATES),
    "min.compaction.lag.ms": (ChangelogKind.VERSIONED,),
}
