"""What happened, as values for log, metrics and callbacks, and the texts of the log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.agent.state import Shortfall, TopicResult
from headwater.model.expansions import ExpansionEntry
from headwater.model.problems import Problem
from headwater.planner.phrases import lines_of_problems, summary_phrase


@attrs.frozen
class AgentEvent:
    """What happened."""


@attrs.frozen
class ApplicationEvent(AgentEvent):
    """What happened to one application."""

    application: str


@attrs.frozen
class ExpansionStarted(ApplicationEvent):
    """Partitions are missing. `is_resumed`: an earlier leader, or this agent before a restart, began it."""

    number: int
    shortfalls: tuple[Shortfall, ...]
    is_resumed: bool = False


@attrs.frozen
class AttemptEnded(ApplicationEvent):
    """An attempt ended; one result for each topic."""

    number: int
    results: tuple[TopicResult, ...]

    @property
    def failed(self) -> tuple[TopicResult, ...]:
        return tuple(result for result in self.results if not result.is_success)


@attrs.frozen
class AttemptFailed(ApplicationEvent):
    """At least one topic failed, or cluster or journal could not be reached; another attempt follows."""

    number: int
    reasons: tuple[str, ...]
    retry_in_ms: int
    failing_for_ms: int


@attrs.frozen
class GaveUp(ApplicationEvent):
    """An expansion was given up: `partition.autoscaling.timeout.ms` passed without a success."""

    number: int
    failing_for_ms: int
    shortfalls: tuple[Shortfall, ...]
    problems: tuple[Problem, ...] = ()
    """Why the last attempt failed."""


@attrs.frozen
class Expanded(ApplicationEvent):
    """All topics have their partitions, `took_ms` after the first shortfall was observed."""

    number: int
    took_ms: int


@attrs.frozen
class Notified(ApplicationEvent):
    """The callback was called with these counts; `error` is the text of its exception."""

    number: int
    old: int
    new: int
    error: str = ""


@attrs.frozen
class Cancelled(ApplicationEvent):
    """The expansion with this number in the journal was canceled."""

    number: int
    reason: str


@attrs.frozen
class ApplicationStopped(ApplicationEvent):
    """Partitions are missing and autoscaling is off: `INCOMPLETE_SOURCE_TOPIC_METADATA`."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ApplicationRefused(ApplicationEvent):
    """Expansion is blocked by `problems`."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ApplicationWarned(ApplicationEvent):
    """There are problems that do not block an expansion, such as a missing internal topic."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ProblemsSolved(ApplicationEvent):
    """The problems of the last event of this kind are solved."""


@attrs.frozen
class LeadershipGained(AgentEvent):
    """This agent leads and has read the journal."""

    term: int


@attrs.frozen
class LeadershipLost(AgentEvent):
    """This agent does not lead any more; `term` was its last one."""

    term: int


@attrs.frozen
class ClusterUnreadable(AgentEvent):
    """A read of the cluster failed, the first time or for a new reason."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ClusterReadable(AgentEvent):
    """The cluster can be read again."""


@attrs.frozen
class JournalUnavailable(AgentEvent):
    """The leader could not read or write the journal, the first time or for a new reason."""

    problems: tuple[Problem, ...]


@attrs.frozen
class JournalAvailable(AgentEvent):
    """The journal was read or written again."""


@attrs.frozen
class DocumentsChanged(AgentEvent):
    """Changed files were read again; `applications` are the ids in all files."""

    applications: tuple[str, ...]


@attrs.frozen
class DocumentsRefused(AgentEvent):
    """The changed documents have errors; the agent keeps the previous ones."""

    problems: tuple[Problem, ...]


_MESSAGES: Mapping[type[object], tuple[str, str]] = {
    ExpansionStarted: ("info", "expansion started"),
    AttemptEnded: ("info", "attempt ended"),
    AttemptFailed: ("warning", "attempt failed, retrying"),
    GaveUp: ("warning", "gave up: no success within partition.autoscaling.timeout.ms"),
    Expanded: ("info", "expanded"),
    Notified: ("info", "callback called"),
    Cancelled: ("info", "expansion cancelled"),
    ApplicationStopped: ("error", "INCOMPLETE_SOURCE_TOPIC_METADATA: autoscaling is off"),
    ApplicationRefused: ("error", "expansion blocked"),
    ApplicationWarned: ("warning", "application has problems"),
    ProblemsSolved: ("info", "problems solved"),
    LeadershipGained: ("info", "leadership gained"),
    LeadershipLost: ("info", "leadership lost"),
    ClusterUnreadable: ("warning", "cluster not readable, retrying"),
    ClusterReadable: ("info", "cluster readable again"),
    JournalUnavailable: ("warning", "journal not available, retrying"),
    JournalAvailable: ("info", "journal available again"),
    DocumentsChanged: ("info", "documents changed"),
    DocumentsRefused: ("error", "changed documents have errors, previous ones kept"),
}


@attrs.frozen
class LogLine:
    """A line of the log; `fields` are texts, numbers and lists of them."""

    level: str
    message: str
    fields: Mapping[str, Any]


def log_line(event: AgentEvent) -> LogLine:
    """Return the log line of an event; a callback that raised an exception is an error."""
    level, message = _MESSAGES.get(type(event), ("info", type(event).__name__))
    if isinstance(event, Notified) and event.error:
        level = "error"
    names = [field.name for field in attrs.fields(type(event))]
    return LogLine(level, message, {name: _log_value(getattr(event, name)) for name in names})


def _log_value(value: object) -> object:
    match value:
        case Shortfall():
            return f"{value.topic}: {value.partitions} of {value.required}"
        case TopicResult():
            reason = f" ({value.error}: {value.message})" if value.error else ""
            return f"{value.topic}: {value.outcome.value}, {value.partitions} partitions{reason}"
        case ExpansionEntry():
            return f"{value.application}#{value.number} {value.stage.value}"
        case Sequence() if not isinstance(value, str):
            problems = [each for each in value if isinstance(each, Problem)]
            others = (_log_value(each) for each in value if not isinstance(each, Problem))
            return [*_problem_texts(problems), *others]
    return value


def _problem_texts(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield the problems as texts; a fix that several topics have once."""
    for_topics = ((each, f" [{each.topic}]" if each.topic else "") for each in problems)
    return lines_of_problems(
        (
            each.code.value,
            f"{each.code.value}{topic}: {summary_phrase(each.code, each.summary, each.found)}",
            each.fix,
        )
        for each, topic in for_topics
    )
