"""PURE. What the agent knows, as frozen values: applications, their expansions, and what happened.

Times are milliseconds. Those that end in `_ms` count on the agent's own clock, which never runs backwards
(`decide.clock`); only `wall_ms` are milliseconds since the epoch, for people to read.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum

import attrs

from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem
from infra.model.topology import TopologyDocument

TopicCounts = Mapping[str, int]
"""Topic name → partition count; a topic that does not exist is absent."""

INCOMPLETE_SOURCE_TOPIC_METADATA = "INCOMPLETE_SOURCE_TOPIC_METADATA"
"""What Kafka Streams answers to all clients when counts do not fit and it may not expand (KIP-878)."""


class Phase(StrEnum):
    """Where an application stands. One holds at a time; the first that applies, in this order."""

    REFUSED = "refused"
    """Nothing may be expanded: `problems` say why (over-partitioned, unsafe, a source missing, ...)."""
    STOPPED = "stopped"
    """Partitions lack and `partition.autoscaling.enabled` is false: `INCOMPLETE_SOURCE_TOPIC_METADATA`."""
    WAITING = "waiting"
    """Partitions lack, and somebody else is to act first: the leader, or the writer of a source topic."""
    GIVEN_UP = "given-up"
    """Partitions lack, and `partition.autoscaling.timeout.ms` has passed without a success."""
    EXPANDING = "expanding"
    """Partitions lack; the first attempt, or another one, is due."""
    SETTLING = "settling"
    """Every topic is expanded; the final follow-up is due when the brokers have heard of it."""
    STEADY = "steady"


@attrs.frozen
class Parallelism:
    """Tasks of one sub-topology (`current-` and `expected-subtopology-parallelism`).

    `expected` is what its source topics ask for. `current` is the least that all its internal topics allow:
    it equals `expected` only when each of them has the partitions that it needs.
    """

    subtopology: int
    current: int
    expected: int


@attrs.frozen
class Shortfall:
    """A topic with fewer partitions than its sources ask for."""

    application: str
    topic: str
    partitions: int
    wanted: int


class Outcome(Enum):
    """What became of one topic in one attempt."""

    EXPANDED = "expanded"
    ALREADY = "already"
    """It had as many partitions when the request came: somebody else was faster, or an answer was lost."""
    FAILED = "failed"
    """Refused, or no answer in time (then it may have been expanded all the same)."""
    HELD_BACK = "held back"
    """Not asked for: a topic downstream of it failed."""


@attrs.frozen
class TopicResult:
    """`error` is Kafka's name of the error, `message` its text; both empty unless FAILED."""

    topic: str
    partitions: int
    """The count that was asked for."""
    outcome: Outcome
    error: str = ""
    message: str = ""

    @property
    def is_success(self) -> bool:
        return self.outcome in (Outcome.EXPANDED, Outcome.ALREADY)


class Stage(StrEnum):
    """How far an expansion is, as the journal knows it."""

    STARTED = "started"
    """Written before the first topic is changed."""
    EXPANDED = "expanded"
    """All topics have their partitions; the callback is due."""
    NOTIFIED = "notified"
    """The callback was called: the expansion is over."""
    GIVEN_UP = "given-up"
    CANCELLED = "cancelled"
    """The flag was switched off, or the application's document went."""

    @property
    def is_final(self) -> bool:
        return self in (Stage.NOTIFIED, Stage.GIVEN_UP, Stage.CANCELLED)


@attrs.frozen(kw_only=True)
class ExpansionEntry:
    """One line of the journal: who expanded what, when and why.

    An expansion is known by (`application`, `number`); numbers count up. `before` and `after` are the counts
    of its internal and managed sink topics, `sources_before` and `sources_after` those of its source topics:
    what grew there is why. `done` are the topics that this agent expanded (the others were expanded by
    somebody else). `reason` says in one sentence why, or why it ended.
    """

    application: str
    number: int
    stage: Stage
    wall_ms: int
    client_id: str
    before: TopicCounts
    after: TopicCounts
    sources_before: TopicCounts = attrs.field(factory=dict)
    sources_after: TopicCounts = attrs.field(factory=dict)
    done: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen(kw_only=True)
class Expansion:
    """An expansion that is going on (an *autoscaling event*): from the first shortfall to the callback."""

    number: int
    started_ms: int
    before: TopicCounts
    sources_before: TopicCounts = attrs.field(factory=dict)
    attempts: int = 0
    failing_since_ms: int | None = None
    """When the first failure since the last success was: the clock of `partition.autoscaling.timeout.ms`."""
    retry_at_ms: int | None = None
    follow_up_at_ms: int | None = None
    """When the final follow-up is due; None until every topic is expanded."""
    done: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ApplicationState:
    """One application, as seen last."""

    id: str
    phase: Phase = Phase.STEADY
    problems: tuple[Problem, ...] = ()
    is_enabled: bool = False
    """`partition.autoscaling.enabled`, as the document says now."""
    timeout_ms: int = 0
    """`partition.autoscaling.timeout.ms`, likewise."""
    parallelism: tuple[Parallelism, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    expansion: Expansion | None = None
    settled: TopicCounts = attrs.field(factory=dict)
    """Counts of its internal and managed sink topics when they last agreed with the sources."""
    settled_sources: TopicCounts = attrs.field(factory=dict)
    given_up: TopicCounts = attrs.field(factory=dict)
    """The counts that were wanted when the agent gave up: they are not tried again."""
    last_number: int = 0
    """The number of the last expansion."""
    called_number: int = 0
    """The last expansion whose callback this process has called, be it written down or not."""
    called_error: str = ""
    """What that call raised."""

    @property
    def error_code(self) -> str | None:
        """What Kafka Streams would send to its clients, if anything."""
        return INCOMPLETE_SOURCE_TOPIC_METADATA if self.phase is Phase.STOPPED else None


@attrs.frozen
class Wanted:
    """What documents ask for, compiled against the counts of the topics that they depend on."""

    documents: tuple[TopologyDocument, ...] = ()
    counts: TopicCounts = attrs.field(factory=dict)
    applications: tuple[CompiledApplication, ...] = ()


@attrs.frozen
class Sighting:
    """The partition count that a topic is taken to have.

    Brokers learn of a change at different times: a lower count (0: the topic is gone) is believed when it has
    been seen since `lower_since_ms` for the time that metadata takes to spread.
    """

    partitions: int
    lower_since_ms: int | None = None


@attrs.frozen
class Retry:
    """Failures in a row of something, and when it is tried again."""

    attempts: int = 0
    at_ms: int | None = None


@attrs.frozen(kw_only=True)
class AgentState:
    """Everything the agent knows. What matters of it can be had again from cluster and journal."""

    clock_ms: int = 0
    """The agent's own clock: the sum of all steps forward of the monotonic clock."""
    monotonic_ms: int | None = None
    """The monotonic clock when it was last looked at."""
    applications: Mapping[str, ApplicationState] = attrs.field(factory=dict)
    sightings: Mapping[str, Sighting] = attrs.field(factory=dict)
    wanted: Wanted = Wanted()
    term: int | None = None
    """The term in which this agent leads; None while another one does."""
    is_recovered: bool = False
    """Whether the journal was read in this term."""
    failures: int = 0
    """`num-autoscaling-failures`: how often the agent gave up."""
    unreadable: tuple[Problem, ...] = ()
    """Why the cluster could not be read the last time; empty when it could."""
    observed_at_ms: int | None = None
    """When the cluster was last read."""
    looks: int = 0
    """How often the cluster was read."""
    is_look_wanted: bool = True
    reading: Retry = Retry()
    """Pauses between readings that fail."""
    outbox: tuple[ExpansionEntry, ...] = ()
    """What the journal is to know before anything else is changed."""
    journal: tuple[Problem, ...] = ()
    """Why the journal could not be read or written the last time; empty when it could."""
    journalling: Retry = Retry()
    deposed_term: int = -1
    """The last term that the journal refused: whoever still says that this agent leads in it is late."""

    @property
    def is_leader(self) -> bool:
        return self.term is not None
