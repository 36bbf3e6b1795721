"""What an agent shows of itself: events as log lines, the state as the JSON object `agent` of `/status`.

The schema of the status is `topology_schemas/agent-status.v1.schema.json`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from headwater.agent import events
from headwater.agent.events import AgentEvent
from headwater.agent.state import (
    AgentState,
    ApplicationState,
    Expansion,
    ExpansionEntry,
    Shortfall,
    TopicResult,
)
from headwater.model.problems import Problem

_MESSAGES: Mapping[type[object], tuple[str, str]] = {
    events.ExpansionStarted: ("info", "expansion started"),
    events.AttemptEnded: ("info", "attempt ended"),
    events.AttemptFailed: ("warning", "attempt failed, retrying"),
    events.GaveUp: ("warning", "gave up: no success within partition.autoscaling.timeout.ms"),
    events.Expanded: ("info", "expanded"),
    events.Notified: ("info", "callback called"),
    events.Cancelled: ("info", "expansion cancelled"),
    events.ApplicationStopped: ("error", "INCOMPLETE_SOURCE_TOPIC_METADATA: autoscaling is off"),
    events.ApplicationRefused: ("error", "expansion blocked"),
    events.ApplicationWarned: ("warning", "application has problems"),
    events.ProblemsSolved: ("info", "problems solved"),
    events.LeadershipGained: ("info", "leadership gained"),
    events.LeadershipLost: ("info", "leadership lost"),
    events.ClusterUnreadable: ("warning", "cluster not readable, retrying"),
    events.ClusterReadable: ("info", "cluster readable again"),
    events.DocumentsChanged: ("info", "documents changed"),
    events.DocumentsRefused: ("error", "changed documents have errors, previous ones kept"),
}


@attrs.frozen
class LogLine:
    """`fields` are texts, numbers and lists of them."""

    level: str
    message: str
    fields: Mapping[str, Any]


def log_line(event: AgentEvent) -> LogLine:
    """Return the log line of an event; a callback that raised an exception is an error."""
    level, message = _MESSAGES.get(type(event), ("info", type(event).__name__))
    if isinstance(event, events.Notified) and event.error:
        level = "error"
    names = [field.name for field in attrs.fields(type(event))]
    return LogLine(level, message, {name: _shown(getattr(event, name)) for name in names})


def _shown(value: object) -> object:
    match value:
        case Shortfall():
            return f"{value.topic}: {value.partitions} of {value.required}"
        case TopicResult():
            reason = f" ({value.error}: {value.message})" if value.error else ""
            return f"{value.topic}: {value.outcome.value}, {value.partitions} partitions{reason}"
        case Problem():
            topic = f" [{value.topic}]" if value.topic else ""
            return f"{value.code.value}{topic}: {value.summary} {value.fix}".rstrip()
        case ExpansionEntry():
            return f"{value.application}#{value.number} {value.stage.value}"
        case Sequence() if not isinstance(value, str):
            return [_shown(item) for item in value]
    return value


def agent_status(
    state: AgentState,
    read_at: str | None,
    election_error: str = "",
    journal_problems: Sequence[Problem] = (),
) -> Mapping[str, Any]:
    """Return the JSON object of an agent.

    Args:
        state: the state of the agent.
        read_at: when the cluster was last read, as an ISO 8601 time.
        election_error: why this agent cannot take part in the election, empty if it can.
        journal_problems: records of the journal that were skipped.
    """
    return {
        "leader": state.is_leader,
        "term": state.term,
        "electionTrouble": election_error,
        "clusterReadable": state.observed_at_ms is not None and not state.read_problems,
        "readAt": read_at,
        "failures": state.failures,
        "problems": [
            problem_status(problem)
            for problem in (*state.read_problems, *state.journal_problems, *journal_problems)
        ],
        "applications": [
            _application(application, state.clock_ms) for _, application in sorted(state.applications.items())
        ],
    }


def problem_status(problem: Problem) -> Mapping[str, Any]:
    """Return the JSON object of a problem."""
    return {
        "code": problem.code.value,
        "severity": problem.severity.value,
        "summary": problem.summary,
        "topic": problem.topic,
        "expected": problem.expected,
        "found": problem.found,
        "why": problem.why,
        "fix": problem.fix,
    }


def _application(application: ApplicationState, clock_ms: int) -> Mapping[str, Any]:
    return {
        "id": application.id,
        "phase": application.phase.value,
        "autoscaling": application.is_enabled,
        "errorCode": application.error_code,
        "subtopologies": [
            {"id": part.subtopology, "current": part.current, "expected": part.expected}
            for part in application.parallelism
        ],
        "missing": [
            {"topic": shortfall.topic, "partitions": shortfall.partitions, "wanted": shortfall.required}
            for shortfall in application.shortfalls
        ],
        "expansion": application.expansion and _expansion(application.expansion, clock_ms),
        "problems": [problem_status(problem) for problem in application.problems],
    }


def _expansion(expansion: Expansion, clock_ms: int) -> Mapping[str, Any]:
    since = expansion.failing_since_ms
    return {
        "number": expansion.number,
        "attempts": expansion.attempts,
        "runningForMs": max(clock_ms - expansion.started_ms, 0),
        "failingForMs": None if since is None else max(clock_ms - since, 0),
        "done": list(expansion.done),
    }
