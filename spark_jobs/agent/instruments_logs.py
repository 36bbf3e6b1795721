"""PURE. Each event of the agent as one line of the log: level, words, fields."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from infra.model.problems import Problem
from spark_jobs.agent import events
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.state import ExpansionEntry, Shortfall, TopicResult

_WORDS: Mapping[type[object], tuple[str, str]] = {
    events.ExpansionStarted: ("info", "expansion started"),
    events.AttemptEnded: ("info", "attempt ended"),
    events.AttemptFailed: ("warning", "attempt failed, will be tried again"),
    events.GaveUp: ("warning", "gave up: partition.autoscaling.timeout.ms has passed without a success"),
    events.Expanded: ("info", "expanded"),
    events.Notified: ("info", "callback called"),
    events.Cancelled: ("info", "expansion cancelled"),
    events.ApplicationStopped: ("error", "INCOMPLETE_SOURCE_TOPIC_METADATA: autoscaling is off"),
    events.ApplicationRefused: ("error", "nothing may be expanded"),
    events.ApplicationWarned: ("warning", "something is wrong"),
    events.ProblemsSolved: ("info", "problems solved"),
    events.LeadershipGained: ("info", "leadership gained"),
    events.LeadershipLost: ("info", "leadership lost"),
    events.ClusterUnreadable: ("warning", "cluster cannot be read"),
    events.ClusterReadable: ("info", "cluster can be read again"),
    events.DocumentsChanged: ("info", "documents changed"),
    events.DocumentsRefused: ("error", "changed documents have errors, the ones before stay"),
}


@attrs.frozen
class LogLine:
    level: str
    words: str
    fields: Mapping[str, Any]


def log_line(event: AgentEvent) -> LogLine:
    level, words = _WORDS.get(type(event), ("info", type(event).__name__))
    if isinstance(event, events.Notified) and event.error:
        level = "error"
    names = [field.name for field in attrs.fields(type(event))]
    return LogLine(level, words, {name: _shown(getattr(event, name)) for name in names})


def _shown(value: object) -> object:
    """Return a value that fits a line: texts and numbers, in lists at most."""
    match value:
        case Shortfall():
            return f"{value.topic}: {value.partitions} of {value.wanted}"
        case TopicResult():
            reason = f" ({value.error}: {value.message})" if value.error else ""
            return f"{value.topic}: {value.outcome.value}, {value.partitions} partitions{reason}"
        case Problem():
            place = f" [{value.topic}]" if value.topic else ""
            return f"{value.code.value}{place}: {value.summary} {value.fix}".rstrip()
        case ExpansionEntry():
            return f"{value.application}#{value.number} {value.stage.value}"
        case Sequence() if not isinstance(value, str):
            return [_shown(item) for item in value]
    return value
