"""An internal topic has a setting that loses data."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.application import ActiveApplication, TopicState
from infra.planner.settings import Misconfiguration, Settings, misconfigurations


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
    return application.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"Setting {key} of internal topic {state.name} endangers its data.",
        topic=state,
        expected=f"{key} {fault.expected}",
        found=f"{key} {fault.found}",
        why=fault.why,
        fix=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} {option}`, or set "
        "`internal.topics.setup: automatic` and run again. If the value is intended, declare it in the "
        "document."
        if application.is_manual
        else f"{application.caller.reconciler} resets it. Check whether data is already lost, and who "
        "changed the setting.",
        severity=Severity.ERROR if application.is_manual else Severity.WARNING,
    )
