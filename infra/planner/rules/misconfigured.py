"""An internal topic has a setting that loses data."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.settings import Misconfiguration, Settings, misconfigurations
from infra.planner.situation import Situation, TopicState


def misconfigured(situation: Situation) -> Iterator[Problem]:
    """KIP-698, `MisconfiguredInternalTopicException`. `automatic` puts it right and says so."""
    for state in situation.internal:
        if isinstance(state.wanted, InternalTopic) and state.live is not None:
            settings = Settings(state.live, situation.snapshot.topic_defaults)
            for fault in misconfigurations(state.wanted, settings):
                yield _problem(situation, state, fault)


def _problem(situation: Situation, state: TopicState, fault: Misconfiguration) -> Problem:
    key, wanted = fault.change.key, fault.change.wanted
    option = f"--delete-config {key}" if wanted is None else f"--add-config {key}={_quoted(wanted)}"
    end = "." if situation.is_manual else "; it is put right."
    return situation.problem(
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        f"Setting {key} of internal topic {state.name} endangers its data{end}",
        about=state,
        expected=f"{key} {fault.expected}",
        found=f"{key} {fault.found}",
        why=fault.why,
        fix=f"Run `kafka-configs.sh --bootstrap-server BROKER --alter --topic {state.name} {option}`, or set "
        "`internal.topics.setup: automatic` and run again. If it is meant, declare it in the document."
        if situation.is_manual
        else "Check whether data is lost already, and who changed the setting.",
        severity=Severity.ERROR if situation.is_manual else Severity.WARNING,
    )


def _quoted(value: str) -> str:
    return f"[{value}]" if "," in value else value
