"""An internal topic has a setting that loses data."""

from collections.abc import Iterator, Mapping

from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.settings import Misconfiguration, Settings, misconfigurations


def misconfigured(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MisconfiguredInternalTopicException`. With `automatic` setup the setting is reset."""
    for state in application.internal:
        if isinstance(state.declared, InternalTopic) and state.live is not None:
            settings = Settings(state.live, application.snapshot.topic_defaults)
            for fault in misconfigurations(state.declared, settings):
                yield _problem(application, state, fault)


def _problem(application: ActiveApplication, state: TopicState, fault: Misconfiguration) -> Problem:
    key, declared = fault.change.key, fault.change.declared
    option = f"--delete-config {key}" if declared is None else f"--add-config {key}={declared}"
    intended = _declaration(state, key, application.snapshot.topic_defaults)
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"Setting {key} of internal topic {state.name} endangers its data.",
        topic=state,
        expected=f"{key} {fault.expected}",
        found=f"{key} {fault.found}",
        why=fault.why,
        fix=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} {option}`, or set "
        f"`internal.topics.setup: automatic` and run again. If the value is intended, {intended}"
        if application.is_manual
        else f"{application.caller.reconciler} resets it. Check whether data is already lost, and who "
        f"changed the setting. If the value is intended, {intended}",
        severity=Severity.ERROR if application.is_manual else Severity.WARNING,
    )


def _declaration(state: TopicState, key: str, defaults: Mapping[str, str]) -> str:
    """Return how the document declares the live value: of one store, or of all internal topics."""
    value = Settings(state.live, defaults).effective(key) if state.live else None
    topic = state.declared
    if isinstance(topic, InternalTopic) and topic.kind is TopicKind.CHANGELOG:
        return (
            f"declare it at store {topic.node}: `logging: {{{key}: {_quoted(value)}}}` next to the name "
            f"of the "
            "store."
        )
    return (
        f"declare it in the application's config, for all internal topics: `topic.{key}: {_quoted(value)}`."
    )


def _quoted(value: str | None) -> str:
    """Return the value as YAML within a flow mapping: a comma would end it."""
    text = value or ""
    return f'"{text}"' if "," in text else text
