"""PURE. What happened, for logs and metrics: one value each, told once."""

import attrs

from infra.model.problems import Problem
from spark_jobs.agent.state import Shortfall, TopicResult


@attrs.frozen
class ApplicationEvent:
    application: str


@attrs.frozen
class ExpansionStarted(ApplicationEvent):
    """Partitions lack. `is_resumed`: an earlier leader, or this agent before a restart, began with it."""

    number: int
    shortfalls: tuple[Shortfall, ...]
    is_resumed: bool = False


@attrs.frozen
class AttemptEnded(ApplicationEvent):
    """An attempt is over, topic by topic."""

    number: int
    results: tuple[TopicResult, ...]

    @property
    def failed(self) -> tuple[TopicResult, ...]:
        return tuple(result for result in self.results if not result.is_success)


@attrs.frozen
class AttemptFailed(ApplicationEvent):
    """At least one topic failed, or the cluster or the journal could not be reached; a follow-up is due."""

    number: int
    reasons: tuple[str, ...]
    retry_in_ms: int
    failing_for_ms: int


@attrs.frozen
class GaveUp(ApplicationEvent):
    """`partition.autoscaling.timeout.ms` passed without a success: counted once, then the agent goes on."""

    number: int
    failing_for_ms: int
    shortfalls: tuple[Shortfall, ...]


@attrs.frozen
class Expanded(ApplicationEvent):
    """All topics have their partitions, `took_ms` after the first shortfall was seen."""

    number: int
    took_ms: int


@attrs.frozen
class Notified(ApplicationEvent):
    """The callback was called with these counts; `error` is the text of what it raised."""

    number: int
    old: int
    new: int
    error: str = ""


@attrs.frozen
class Cancelled(ApplicationEvent):
    number: int
    reason: str


@attrs.frozen
class ApplicationStopped(ApplicationEvent):
    """Autoscaling is off: `INCOMPLETE_SOURCE_TOPIC_METADATA`; `problems` are the details."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ApplicationRefused(ApplicationEvent):
    """Nothing may be expanded for now."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ApplicationWarned(ApplicationEvent):
    """Something is wrong that does not stand against an expansion, such as a missing internal topic."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ProblemsSolved(ApplicationEvent):
    """What was told by one of the three before holds no longer."""


@attrs.frozen
class LeadershipGained:
    """This agent leads, and has read the journal."""

    term: int


@attrs.frozen
class LeadershipLost:
    term: int


@attrs.frozen
class ClusterUnreadable:
    """Told when it begins and whenever the reason changes."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ClusterReadable:
    """The cluster answers again."""


@attrs.frozen
class DocumentsChanged:
    applications: tuple[str, ...]


@attrs.frozen
class DocumentsRefused:
    """The changed documents have errors: the agent goes on with the ones before."""

    problems: tuple[Problem, ...]


AgentEvent = (
    ExpansionStarted
    | AttemptEnded
    | AttemptFailed
    | GaveUp
    | Expanded
    | Notified
    | Cancelled
    | ApplicationStopped
    | ApplicationRefused
    | ApplicationWarned
    | ProblemsSolved
    | LeadershipGained
    | LeadershipLost
    | ClusterUnreadable
    | ClusterReadable
    | DocumentsChanged
    | DocumentsRefused
)
