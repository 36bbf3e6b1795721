"""Broker defaults that harm internal topics: Kafka Streams does not set these settings on its topics."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.compiler.java.config_values import parse_whole
from headwater.model.broker_defaults import (
    BROKER_DEFAULTS,
    LARGEST_MESSAGE,
    LARGEST_REQUEST,
    RETENTION_BYTES,
    BrokerDefault,
)
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.phrases import few
from headwater.planner.plans import TopicAction
from headwater.planner.rules.topic_messages import quote_value
from headwater.planner.run import ActiveApplication, Run, TopicState

_REQUEST_KEYS = ("producer.max.request.size", "max.request.size")


def harmful_defaults(run: Run) -> Iterator[Problem]:
    """Yield a warning for each application and default that its internal topics have.

    Defaults that the user may not read are not known, and not reported.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        largest = _largest_request(application.compiled.application.config)
        profile = application.compiled.application.cluster_profile
        for key, default in BROKER_DEFAULTS.items():
            value = run.snapshot.topic_defaults.get(key)
            if value is None or not default.is_harmful(value, largest):
                continue
            if profile is not None and profile.refuses(key):
                continue
            harmed = [
                state
                for state in application.internal
                if _uses_default(key, state, actions[state.name], run.snapshot.topic_defaults)
            ]
            if harmed:
                yield _problem_of(application, default, value, harmed, largest)


def _largest_request(config: Mapping[str, str]) -> int:
    """Return `max.request.size` of the producers of an application."""
    declared = next((config[key] for key in _REQUEST_KEYS if key in config), "")
    return parse_whole(declared) or LARGEST_REQUEST


def _uses_default(key: str, state: TopicState, action: TopicAction, defaults: Mapping[str, str]) -> bool:
    """Return whether the topic has the default after the run, and the default has an effect on it."""
    if key in action.config:
        return False
    if state.declared.config.get(key) == defaults[key]:
        return False  # the document declares the same value
    policy = action.config.get("cleanup.policy", defaults.get("cleanup.policy", "delete"))
    return key != RETENTION_BYTES or "delete" in policy


def _problem_of(
    application: ActiveApplication,
    default: BrokerDefault,
    value: str,
    harmed: Sequence[TopicState],
    largest: int,
) -> Problem:
    key, names = default.key, [state.name for state in harmed]
    harmless = str(largest) if key == LARGEST_MESSAGE and largest > LARGEST_REQUEST else default.harmless
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"The brokers' default of {key} harms internal topics of {application.id}.",
        expected=f"{key} {'at least ' if key == LARGEST_MESSAGE else ''}{harmless}",
        found=f"{key} {value}, the brokers' default, which applies to {few(names)}",
        why=f"Kafka Streams does not set it. {default.effect}",
        fix=_fix_of(application, key, harmless, harmed)
        + f" Or set {default.broker_key} of the brokers to {harmless}.",
        severity=Severity.WARNING,
    )


def _fix_of(application: ActiveApplication, key: str, harmless: str, harmed: Sequence[TopicState]) -> str:
    """Return how the topics get a value of their own. A run with `manual` setup changes no topic."""
    where = f"`topic.{key}: {harmless}` in the application's config"
    if application.compiled.is_observed:
        name, config = harmed[0].name, {**harmed[0].declared.config, key: harmless}
        text = ", ".join(f"{each}: {quote_value(value)}" for each, value in sorted(config.items()))
        where = f"{key} for each of these topics below `observed.topics`, for {name} `config: {{{text}}}`"
    existing = [state.name for state in harmed if state.live is not None]
    if application.is_manual and existing:
        return (
            f"Declare {where}, and set it on each topic: `kafka-configs.sh --bootstrap-server BROKER "
            f"--alter --topic {existing[0]} --add-config {key}={harmless}`."
        )
    return (
        f"Declare {where}, and run `pulumi up`. If the application may create its topics itself, set the "
        "same in its code or properties."
    )
