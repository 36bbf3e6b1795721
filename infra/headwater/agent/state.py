"""The state of the agent, as frozen values and as JSON: applications, their expansions, and problems.

Times are milliseconds on the clock of the agent, which never runs backwards (`decide.clock`). Only `wall_ms`
are milliseconds since the epoch.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.expansions import ExpansionEntry, TopicCounts
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import TopologyDocument

OffsetTexts = tuple[str, ...] | Problem
"""What a group has committed with its offsets, or why it could not be read."""
INCOMPLETE_SOURCE_TOPIC_METADATA = "INCOMPLETE_SOURCE_TOPIC_METADATA"
"""The error code that Kafka Streams sends to all clients when it may not expand (KIP-878)."""


class Phase(StrEnum):
    """The phase of an application: the first phase that applies, in this order."""

    REFUSED = "refused"
    """Expansion is blocked by `problems` (over-partitioned, unsafe, a source is missing, ...)."""
    STOPPED = "stopped"
    """Partitions are missing and `partition.autoscaling.enabled` is false: the error code above."""
    WAITING = "waiting"
    """Partitions are missing; another agent must act first: the leader, or the agent of a source topic."""
    GIVEN_UP = "given-up"
    """Partitions are missing, and `partition.autoscaling.timeout.ms` passed without a success."""
    EXPANDING = "expanding"
    """Partitions are missing; the first attempt, or another one, is due."""
    SETTLING = "settling"
    """Every topic is expanded; the final follow-up is due when the brokers have shared the metadata."""
    INCOMPLETE = "incomplete"
    """An internal topic does not exist. Only reported: the agent creates none, so it acts as in STEADY."""
    STEADY = "steady"


@attrs.frozen
class Parallelism:
    """Tasks of one sub-topology (`current-` and `expected-subtopology-parallelism`).

    `expected` follows from its source topics. `current` is the least that its internal topics allow: it
    equals `expected` only when each of them has the partitions that it requires.
    """

    subtopology: int
    current: int
    expected: int


@attrs.frozen
class Shortfall:
    """A topic with fewer partitions than its sources require."""

    application: str
    topic: str
    partitions: int
    required: int


class Outcome(Enum):
    """The outcome of one attempt for one topic."""

    EXPANDED = "expanded"
    ALREADY = "already"
    """It had as many partitions before the request: another client was faster, or an answer was lost."""
    FAILED = "failed"
    """Refused, or no answer in time (then the topic may have been expanded)."""
    HELD_BACK = "held back"
    """Not requested, because a topic downstream of it failed."""


@attrs.frozen
class TopicResult:
    """What became of the request to expand a topic.

    `error` is the name of the Kafka error, `message` its text; both are empty unless FAILED.
    """

    topic: str
    partitions: int
    """The requested count."""
    outcome: Outcome
    error: str = ""
    message: str = ""

    @property
    def is_success(self) -> bool:
        return self.outcome in (Outcome.EXPANDED, Outcome.ALREADY)


@attrs.frozen(kw_only=True)
class Expansion:
    """An expansion in progress (KIP-878: *autoscaling event*), from the first shortfall to the callback."""

    number: int
    started_ms: int
    before: TopicCounts
    sources_before: TopicCounts = attrs.field(factory=dict)
    attempts: int = 0
    failing_since_ms: int | None = None
    """Time of the first failure since the last success; starts `partition.autoscaling.timeout.ms`."""
    retry_at_ms: int | None = None
    follow_up_at_ms: int | None = None
    """Time of the final follow-up; None until every topic is expanded."""
    done: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ApplicationState:
    """One application after the last observation."""

    id: str
    phase: Phase = Phase.STEADY
    problems: tuple[Problem, ...] = ()
    is_enabled: bool = False
    """`partition.autoscaling.enabled` of the current document."""
    timeout_ms: int = 0
    """`partition.autoscaling.timeout.ms` of the current document."""
    parallelism: tuple[Parallelism, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    expansion: Expansion | None = None
    settled: TopicCounts = attrs.field(factory=dict)
    """Counts of its internal and managed sink topics when they last matched the sources."""
    settled_sources: TopicCounts = attrs.field(factory=dict)
    given_up: TopicCounts = attrs.field(factory=dict)
    """The required counts when the agent gave up: they are not tried again."""
    attempt_problems: tuple[Problem, ...] = ()
    """Why the last attempt failed."""
    last_number: int = 0
    """The number of the last expansion."""
    called_number: int = 0
    """The last expansion whose callback this process called, whether the journal has it or not."""
    called_error: str = ""
    """The text of the exception of that call."""

    @property
    def reported_problems(self) -> tuple[Problem, ...]:
        """The problems in the status: also why attempts fail, or why the expansion was given up."""
        is_failing = self.expansion is not None and self.expansion.failing_since_ms is not None
        is_reported = is_failing or self.phase is Phase.GIVEN_UP
        return (*self.problems, *(self.attempt_problems if is_reported else ()))

    @property
    def missing_topics(self) -> int:
        """The number of internal topics that do not exist."""
        return [problem.code for problem in self.problems].count(ProblemCode.MISSING_INTERNAL_TOPICS)

    @property
    def reported_phase(self) -> Phase:
        """The phase in status and metrics."""
        is_incomplete = self.phase is Phase.STEADY and self.missing_topics
        return Phase.INCOMPLETE if is_incomplete else self.phase

    @property
    def error_code(self) -> str | None:
        """The error code that Kafka Streams would send to its clients, None: none."""
        return INCOMPLETE_SOURCE_TOPIC_METADATA if self.phase is Phase.STOPPED else None


@attrs.frozen
class Requirements:
    """The documents, compiled with the counts of the topics that they depend on."""

    documents: tuple[TopologyDocument, ...] = ()
    counts: TopicCounts = attrs.field(factory=dict)
    applications: tuple[CompiledApplication, ...] = ()


@attrs.frozen
class ObservedCount:
    """The partition count that the agent uses for a topic.

    Brokers learn of a change at different times. A lower count (0: the topic was deleted) is used when it has
    been observed since `lower_since_ms` for as long as brokers need to share metadata.
    """

    partitions: int
    lower_since_ms: int | None = None


@attrs.frozen
class Retry:
    """The number of failures in a row, and the time of the next attempt."""

    attempts: int = 0
    at_ms: int | None = None


@attrs.frozen(kw_only=True)
class AgentState:
    """The state of the agent. A new leader recovers what it needs of it from the cluster and the journal."""

    clock_ms: int = 0
    """The clock of the agent: the sum of all forward steps of the monotonic clock."""
    monotonic_ms: int | None = None
    """The monotonic clock when it was last read."""
    applications: Mapping[str, ApplicationState] = attrs.field(factory=dict)
    observed_counts: Mapping[str, ObservedCount] = attrs.field(factory=dict)
    processors: Mapping[str, int] = attrs.field(factory=dict)
    """Application → its committed number of processors, if the changelog topics do not show it."""
    undeclared: frozenset[str] = frozenset()
    """The applications with a committed number of processors that their documents do not declare."""
    resharded: frozenset[str] = frozenset()
    """The applications with a topic of a wrong partition count whose reshard is not complete."""
    due_metadata: Mapping[str, TopicCounts] = attrs.field(factory=dict)
    """Application → the topics with whose offsets is committed what decides, to be read next."""
    unread_metadata: Mapping[str, Problem] = attrs.field(factory=dict)
    """Application → why that could not be read last."""
    requirements: Requirements = Requirements()
    term: int | None = None
    """The term in which this agent leads; None while another one does."""
    is_recovered: bool = False
    """Whether this agent has read the journal in this term."""
    failures: int = 0
    """How often the agent gave up (`num-autoscaling-failures`)."""
    read_problems: tuple[Problem, ...] = ()
    """Why the last read of the cluster failed; empty if it succeeded."""
    observed_at_ms: int | None = None
    """Time of the last read of the cluster that succeeded."""
    reads: int = 0
    """How often the cluster was read."""
    is_read_requested: bool = True
    read_retry: Retry = Retry()
    """Failed reads of the cluster."""
    outbox: tuple[ExpansionEntry, ...] = ()
    """Entries that must be in the journal before anything else is changed."""
    journal_problems: tuple[Problem, ...] = ()
    """Why the last read or write of the journal failed; empty if it succeeded."""
    journal_retry: Retry = Retry()
    deposed_term: int = -1
    """The last term that the journal refused: an observation of this term is out of date."""

    @property
    def is_leader(self) -> bool:
        return self.term is not None


def agent_status(
    state: AgentState,
    read_at: str | None,
    election_error: str = "",
    journal_problems: Sequence[Problem] = (),
) -> Mapping[str, Any]:
    """Return the JSON object of an agent (`topology_schemas/agent-status.v1.schema.json`).

    `read_at` is when the cluster was last read, as an ISO 8601 time. `election_error` says why this agent
    cannot take part in the election, `journal_problems` are records of the journal that were skipped.
    """
    return {
        "leader": state.is_leader,
        "term": state.term,
        "electionTrouble": election_error,
        "clusterReadable": state.observed_at_ms is not None and not state.read_problems,
        "readAt": read_at,
        "failures": state.failures,
        "problems": [
            _problem_status(problem)
            for problem in (*state.read_problems, *state.journal_problems, *journal_problems)
        ],
        "applications": [
            _application_json(application, state.clock_ms)
            for _, application in sorted(state.applications.items())
        ],
    }


def _problem_status(problem: Problem) -> Mapping[str, Any]:
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


def _application_json(application: ApplicationState, clock_ms: int) -> Mapping[str, Any]:
    return {
        "id": application.id,
        "phase": application.reported_phase.value,
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
        "expansion": application.expansion and _expansion_json(application.expansion, clock_ms),
        "problems": [_problem_status(problem) for problem in application.reported_problems],
    }


def _expansion_json(expansion: Expansion, clock_ms: int) -> Mapping[str, Any]:
    since = expansion.failing_since_ms
    return {
        "number": expansion.number,
        "attempts": expansion.attempts,
        "runningForMs": max(clock_ms - expansion.started_ms, 0),
        "failingForMs": None if since is None else max(clock_ms - since, 0),
        "done": list(expansion.done),
    }
