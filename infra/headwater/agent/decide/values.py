"""What a decision receives and returns: moments, settings, observations, actions."""

from collections.abc import Iterable, Mapping

import attrs

from headwater.agent.state import AgentState, OffsetTexts, Shortfall, TopicResult
from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication
from headwater.model.expansions import ExpansionEntry, TopicCounts
from headwater.model.policies import Policy
from headwater.model.problems import Problem
from headwater.model.topology import TopologyDocument


@attrs.frozen
class Moment:
    """The time of a decision in milliseconds, and a random number from 0 (included) to 1."""

    monotonic_ms: int
    wall_ms: int = 0
    jitter: float = 0.0


def advance_clock(state: AgentState, now: Moment) -> AgentState:
    """Return the state with its clock advanced; a backward step of the monotonic clock counts as no time."""
    last = now.monotonic_ms if state.monotonic_ms is None else state.monotonic_ms
    step = max(0, now.monotonic_ms - last)
    return attrs.evolve(state, clock_ms=state.clock_ms + step, monotonic_ms=now.monotonic_ms)


_DEFAULT_POLL_MS = 300_000
_MOST_DOUBLINGS = 20
_JITTER = 0.2


@attrs.frozen(kw_only=True)
class AgentPolicy:
    """How an agent acts: how often it reads the cluster, when it tries again, what it must not violate."""

    client_id: str
    """Name of the agent in the journal."""
    poll_ms: int | None = None
    """Time from one read of the cluster to the next; None: the least `metadata.max.age.ms`."""
    settle_ms: int = 10_000
    """Time from the last success to the final follow-up (KIP-878: 10 seconds)."""
    lag_ms: int = 10_000
    """How long a lower count must be observed before it is used: brokers share metadata within seconds."""
    backoff_ms: int = 500
    """Pause before the first follow-up after a failure; doubled each time, up to `backoff_max_ms`."""
    backoff_max_ms: int = 30_000
    policies: tuple[Policy, ...] = ()
    """Policies that an expansion must not violate."""

    def interval_ms(self, applications: Iterable[CompiledApplication]) -> int:
        """Return the time from one read of the cluster to the next, if nothing requires an earlier one."""
        if self.poll_ms is not None:
            return self.poll_ms
        configs = (StreamsConfig.from_application(compiled.application) for compiled in applications)
        return min((config.metadata_max_age_ms for config in configs), default=_DEFAULT_POLL_MS)

    def backoff(self, attempts: int, jitter: float) -> int:
        """Return the pause after the `attempts`-th failure in a row: exponential, less up to a fifth."""
        doubled = self.backoff_ms * 2 ** min(attempts - 1, _MOST_DOUBLINGS)
        return int(min(doubled, self.backoff_max_ms) * (1 - _JITTER * jitter))


@attrs.frozen
class Tick:
    """Time has passed; `read_now`: a user or a changed document requires a read of the cluster."""

    read_now: bool = False


@attrs.frozen
class Metadata:
    """The partition counts of all topics of the cluster, and the current documents."""

    counts: TopicCounts
    documents: tuple[TopologyDocument, ...]


@attrs.frozen
class OffsetMetadataRead:
    """What groups have committed with their offsets: application → the texts, or why they were not read."""

    found: Mapping[str, OffsetTexts]


@attrs.frozen
class Unreadable:
    """The metadata could not be read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class TermObserved:
    """This agent leads in `term`; None: it does not lead."""

    term: int | None


@attrs.frozen
class Deposed:
    """The journal contains a newer term."""


@attrs.frozen
class Unconfirmed:
    """The cluster did not confirm the leadership, so the callback was not called."""

    application: str


@attrs.frozen
class Recovered:
    """The journal was read: application id → its last entry."""

    entries: Mapping[str, ExpansionEntry]


@attrs.frozen
class Written:
    """The entries are in the journal."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class NotWritten:
    """The journal could not be written or read."""

    problems: tuple[Problem, ...]


@attrs.frozen
class Attempted:
    """The result for each topic of an `Expand`."""

    results: tuple[TopicResult, ...]


@attrs.frozen
class CallbackCalled:
    """The callback was called; `error` is the text of its exception, empty if it raised none."""

    application: str
    error: str = ""


Observation = (
    Tick
    | Metadata
    | OffsetMetadataRead
    | Unreadable
    | TermObserved
    | Deposed
    | Unconfirmed
    | Recovered
    | Written
    | NotWritten
    | Attempted
    | CallbackCalled
)


@attrs.frozen
class Observe:
    """Read the metadata of the cluster: `Metadata` or `Unreadable`."""


@attrs.frozen
class ReadOffsetMetadata:
    """Read what groups have committed: application → topic → partition count. `OffsetMetadataRead`."""

    topics: Mapping[str, TopicCounts]


@attrs.frozen
class Recover:
    """Read the journal: `Recovered`, `NotWritten` or `Deposed`."""


@attrs.frozen
class Record:
    """Append the entries to the journal, in this order: `Written`, `NotWritten` or `Deposed`."""

    entries: tuple[ExpansionEntry, ...]


@attrs.frozen
class Expand:
    """Validate the new counts, then expand wave after wave: `Attempted`."""

    waves: tuple[tuple[Shortfall, ...], ...]


@attrs.frozen
class Notify:
    """Call the callback with the old and the new partition count: `CallbackCalled` or `Unconfirmed`."""

    application: str
    old: int
    new: int


Action = Observe | ReadOffsetMetadata | Recover | Record | Expand | Notify
