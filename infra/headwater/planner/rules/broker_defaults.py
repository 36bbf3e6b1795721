"""Broker defaults, and settings of single topics, that harm internal topics."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.model.broker_defaults import BROKER_DEFAULTS, LARGEST_MESSAGE, BrokerDefault
from headwater.model.compiled import InternalTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Protocol
from headwater.planner.phrases import config_text, few_names
from headwater.planner.plans import TopicAction
from headwater.planner.rules.topic_messages import harmful_setting
from headwater.planner.run import ActiveApplication, Run, TopicState
from headwater.planner.settings import Settings, find_misconfigurations


def harmful_defaults(run: Run) -> Iterator[Problem]:
    """Yield a warning for each application and default that its internal topics have.

    Defaults that the user may not read are not known, and not reported.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        largest = application.config.largest_request
        profile = application.compiled.application.cluster_profile
        for key, default in BROKER_DEFAULTS.items():
            value = run.snapshot.topic_defaults.get(key)
            if value is None or not default.is_reported_by_plans or not default.is_harmful(value, largest):
                continue
            if profile is not None and profile.refuses(key):
                continue
            harmed = [
                state
                for state in application.internal
                if _uses_default(default, state, actions[state.name], run.snapshot.topic_defaults)
            ]
            if harmed:
                yield _problem_of(application, default, value, harmed, largest)


def harmful_settings(run: Run) -> Iterator[Problem]:
    """Yield a warning for each setting of a topic that harms it, and that no document declares.

    A user has set it on this topic: a run keeps it. Settings that Kafka Streams requires are reported
    by `misconfigured_topics`. Settings that the cluster refuses cannot be changed.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        largest = application.config.largest_request
        profile = application.compiled.application.cluster_profile
        for state in application.internal:
            if state.live is None:
                continue
            config = actions[state.name].config
            policy = config.get("cleanup.policy", run.snapshot.topic_defaults.get("cleanup.policy", "delete"))
            for key, default in BROKER_DEFAULTS.items():
                value = config.get(key)
                if value is None or value != state.live.config.get(key):
                    continue
                if state.declared.config.get(key) == value or (profile is not None and profile.refuses(key)):
                    continue
                is_harmful = default.is_harmful(value, largest) and default.has_effect(policy)
                if is_harmful and key not in _misconfigured_keys(run, state):
                    yield harmful_setting(application, state, default, value)


def _misconfigured_keys(run: Run, state: TopicState) -> frozenset[str]:
    if state.live is None or not isinstance(state.declared, InternalTopic):
        return frozenset()
    faults = find_misconfigurations(state.declared, Settings(state.live, run.snapshot.topic_defaults))
    return frozenset(fault.change.key for fault in faults)


def _uses_default(
    default: BrokerDefault, state: TopicState, action: TopicAction, defaults: Mapping[str, str]
) -> bool:
    """Return whether the topic has the default after the run, and the default has an effect on it."""
    if default.key in action.config:
        return False
    if state.declared.config.get(default.key) == defaults[default.key]:
        return False  # the document declares the same value
    return default.has_effect(action.config.get("cleanup.policy", defaults.get("cleanup.policy", "delete")))


def _problem_of(
    application: ActiveApplication,
    default: BrokerDefault,
    value: str,
    harmed: Sequence[TopicState],
    largest: int,
) -> Problem:
    key, names = default.key, [state.name for state in harmed]
    harmless = default.harmless_value(largest)
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"The brokers' default of {key} harms internal topics of {application.id}.",
        expected=f"{key} {'at least ' if key == LARGEST_MESSAGE else ''}{harmless}",
        found=f"{key} {value}, the brokers' default, which applies to {few_names(names)}",
        why=f"Kafka Streams does not set it. {default.effect}",
        fix=_fix_of(application, default, value, harmless, harmed),
        severity=Severity.WARNING,
    )


def _fix_of(
    application: ActiveApplication,
    default: BrokerDefault,
    value: str,
    harmless: str,
    harmed: Sequence[TopicState],
) -> str:
    """Return how the topics get a value of their own. A run with `manual` setup changes no topic."""
    where, of_brokers = _declaration_text(application, default.key, harmless, harmed), default.broker_key
    existing = [state.name for state in harmed if state.live is not None]
    if existing and application.compiled.application.protocol is Protocol.STREAMS:
        return (
            f"Set {of_brokers} of the brokers to {harmless}. Or declare {where}, set the same in the code or "
            "properties of the application, and start it under a new application id: a streams group keeps "
            "the settings of its topics."
        )
    if existing and application.is_manual:
        how = (
            "set it on each topic: `kafka-configs.sh --bootstrap-server BROKER --alter --topic "
            f"{existing[0]} --add-config {default.key}={harmless}`."
        )
    else:
        how = (
            "run `pulumi up`. If the application may create its topics itself, set the same in its code or "
            "properties."
        )
    return (
        f"Declare {where}, and {how} Or set {of_brokers} of the brokers to {harmless}. If the default is "
        f"intended, declare {value} instead."
    )


def _declaration_text(
    application: ActiveApplication, key: str, harmless: str, harmed: Sequence[TopicState]
) -> str:
    """Return how the document declares the harmless value for these topics."""
    if not application.compiled.is_observed:
        return f"`topic.{key}: {harmless}` in the application's config"
    name, config = harmed[0].name, {**harmed[0].declared.config, key: harmless}
    text = config_text(config)
    return f"{key} for each of these topics below `observed.topics`, for {name} `{text}`"
