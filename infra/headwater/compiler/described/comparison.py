"""Compares what an imported document compiles to with the topics of the cluster that it was imported from."""

from collections.abc import Collection, Iterator

from headwater.compiler.described.cluster import has_run
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.nodes import TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.topology import DescribedTopology

_MOST_SETTINGS = 10
_OTHER_CODE = (
    "The document is what the exported code needs. So the application that runs on this cluster has other "
    "code or other properties, or a user changed the topic."
)
_EXPORT_AGAIN = (
    "Export the code that runs, with its properties. Or deploy the exported code: `headwater plan` shows "
    "what changes."
)


def compare_with_cluster(
    compiled: CompiledApplication,
    described: DescribedTopology,
    snapshot: ClusterSnapshot,
    undeclared: Collection[str] = (),
    *,
    is_exported: bool = False,
) -> Iterator[Problem]:
    """Yield a warning for each internal topic that differs from the cluster: existence, count, settings.

    `undeclared` are the topics of the application that the document does not have. Their names alone do not
    show that they belong to it. `is_exported`: the document is complete, so that other code runs there.
    An application that has not run yet has no topics to compare with; one with errors has no topics itself.
    """
    application = compiled.application
    is_refused = any(each.code is not ProblemCode.MISSING_DETAIL for each in errors(compiled.problems))
    if is_refused or not has_run(described, application, snapshot):
        return
    for problem in _find_differences(compiled, snapshot, undeclared, is_exported=is_exported):
        yield problem.located(application=application.id, location=described.at)


def _find_differences(
    compiled: CompiledApplication,
    snapshot: ClusterSnapshot,
    undeclared: Collection[str],
    *,
    is_exported: bool,
) -> Iterator[Problem]:
    for topic in compiled.internal_topics:
        live = snapshot.topics.get(topic.name)
        if live is None:
            yield _missing_topic(topic, is_exported=is_exported)
            continue
        if topic.partitions != live.partitions:
            yield _other_count(topic, live, is_exported=is_exported)
        settings = _different_settings(topic, live, snapshot) if live.name in snapshot.described else []
        if settings:
            yield _other_settings(topic, settings, is_exported=is_exported)
    for name in sorted(undeclared):
        yield _unexpected_topic(name, snapshot.topics[name], compiled.application.id, is_exported=is_exported)


def _different_settings(
    topic: InternalTopic, live: LiveTopic, snapshot: ClusterSnapshot
) -> list[tuple[str, str, str]]:
    """Return (setting, expected, found) of the settings that differ; defaults count as set."""
    defaults = snapshot.topic_defaults
    return [
        (key, topic.config.get(key, "not set"), live.config.get(key, "not set"))
        for key in sorted({*topic.config, *live.config})
        if _comparable_value(topic.config.get(key, defaults.get(key)))
        != _comparable_value(live.config.get(key, defaults.get(key)))
    ]


def _comparable_value(setting: str | None) -> object:
    """Return a value in which the order of a list, as of cleanup policies, does not matter."""
    return None if setting is None else frozenset(part.strip() for part in setting.split(","))


def _missing_topic(topic: InternalTopic, *, is_exported: bool) -> Problem:
    remedy = (
        f"If logging of the store is disabled, set `logging: false` under `describe.stores.{topic.node}`"
        if topic.kind is TopicKind.CHANGELOG
        else "Check that the text is of the version of the application that runs"
    )
    return _difference_problem(
        f"Topic {topic.name} of the document is not on the cluster.",
        topic.name,
        f"{topic.partitions} partitions",
        "no topic",
        f"{remedy}. If it was deleted, `headwater plan` shows what happens.",
        is_exported=is_exported,
    )


def _other_count(topic: InternalTopic, live: LiveTopic, *, is_exported: bool) -> Problem:
    return _difference_problem(
        f"{topic.name} has another partition count on the cluster than the document gives.",
        topic.name,
        f"{topic.partitions} partitions",
        f"{live.partitions} partitions",
        "Check the source topics above it, and explicit counts under `describe.repartitions`. If a source "
        "topic was expanded, `headwater plan` shows how its topics follow.",
        is_exported=is_exported,
    )


def _other_settings(
    topic: InternalTopic, settings: list[tuple[str, str, str]], *, is_exported: bool
) -> Problem:
    shown = settings[:_MOST_SETTINGS]
    more = f" and {len(settings) - _MOST_SETTINGS} more" if len(settings) > _MOST_SETTINGS else ""
    remedy = (
        f"set them under `describe.stores.{topic.node}.overrides`"
        if topic.kind is TopicKind.CHANGELOG
        else "declare them as `topic.` configs of the application (`--config topic.KEY=VALUE`)"
    )
    return _difference_problem(
        f"{topic.name} has other settings on the cluster than the document gives.",
        topic.name,
        ", ".join(f"{key}={expected}" for key, expected, _ in shown) + more,
        ", ".join(f"{key}={found}" for key, _, found in shown) + more,
        f"To keep the settings of the cluster, {remedy}. Otherwise a plan changes them.",
        is_exported=is_exported,
    )


def _unexpected_topic(name: str, live: LiveTopic, id_: str, *, is_exported: bool) -> Problem:
    return _difference_problem(
        f"{name} is an internal topic of {id_}, but the document does not have it.",
        name,
        "no topic",
        f"{live.partitions} partitions",
        "If the application uses it, check that the text is complete and of the version that runs; for the "
        "store of a source table, set `ownChangelog: true` under `describe.stores`. Otherwise it belongs to "
        "another application, or an earlier version left it.",
        is_exported=is_exported,
    )


def _difference_problem(
    summary: str, topic: str, expected: str, found: str, fix: str, *, is_exported: bool
) -> Problem:
    return Problem(
        code=ProblemCode.DIFFERS_FROM_CLUSTER,
        summary=summary,
        topic=topic,
        expected=expected,
        found=found,
        why=_OTHER_CODE
        if is_exported
        else "The document does not describe the application that runs on this cluster exactly.",
        fix=_EXPORT_AGAIN if is_exported else fix,
        severity=Severity.WARNING,
    )
