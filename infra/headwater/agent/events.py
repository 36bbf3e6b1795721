"""The events that the agent logs and counts, each reported once."""

import attrs

from headwater.agent.state import Shortfall, TopicResult
from headwater.model.problems import Problem


@attrs.frozen
class ApplicationEvent:
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
    """`partition.autoscaling.timeout.ms` passed without a success. The agent keeps running."""

    number: int
    failing_for_ms: int
    shortfalls: tuple[Shortfall, ...]


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
class LeadershipGained:
    """This agent leads and has read the journal."""

    term: int


@attrs.frozen
class LeadershipLost:
    term: int


@attrs.frozen
class ClusterUnreadable:
    """A read of the cluster failed, the first time or for a new reason."""

    problems: tuple[Problem, ...]


@attrs.frozen
class ClusterReadable:
    """The cluster can be read again."""


@attrs.frozen
class DocumentsChanged:
    applications: tuple[str, ...]


@attrs.frozen
class DocumentsRefused:
    """The changed documents have errors; the agent keeps the previous ones."""

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
