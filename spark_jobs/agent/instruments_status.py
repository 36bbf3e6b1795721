"""PURE. What an agent knows, as the JSON object `agent` of `/status` (agent-status.v1.schema.json)."""

from collections.abc import Mapping
from typing import Any

from infra.model.problems import Problem
from spark_jobs.agent.state import AgentState, ApplicationState, Expansion


def agent_status(state: AgentState, read_at: str | None, trouble: str = "") -> Mapping[str, Any]:
    """Return the object; `read_at` is when the cluster was last read, `trouble` what hinders the election."""
    return {
        "leader": state.is_leader,
        "term": state.term,
        "electionTrouble": trouble,
        "clusterReadable": state.observed_at_ms is not None and not state.unreadable,
        "readAt": read_at,
        "failures": state.failures,
        "problems": [problem_status(problem) for problem in (*state.unreadable, *state.journal)],
        "applications": [
            _application(application, state.clock_ms) for _, application in sorted(state.applications.items())
        ],
    }


def problem_status(problem: Problem) -> Mapping[str, Any]:
    """Return a problem as `topology_schemas/agent-status.v1.schema.json` has it."""
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
            {"topic": lack.topic, "partitions": lack.partitions, "wanted": lack.wanted}
            for lack in application.shortfalls
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
