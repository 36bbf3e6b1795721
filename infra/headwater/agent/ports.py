"""The interfaces that the loop uses. The loop is one thread; every method returns in bounded time."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from headwater.agent.events import AgentEvent
from headwater.agent.state import AgentState, OffsetTexts, Shortfall, TopicResult
from headwater.model.expansions import ExpansionEntry, TopicCounts
from headwater.model.topology import TopologyDocument


class NoLongerLeaderError(Exception):
    """A newer term has begun: nothing may be written or changed in this one."""


class Cluster(Protocol):
    """The topics of one cluster."""

    def partition_counts(self) -> TopicCounts:
        """Return the counts of all topics that the user may see, by one metadata request.

        Raises `ProblemsError` when there is no answer in time.
        """
        ...

    def offset_metadata(self, topics: Mapping[str, TopicCounts]) -> Mapping[str, OffsetTexts]:
        """Return application → the texts that its group has committed, or why they were not read.

        `topics` is application → topic → partition count. The texts are committed with offsets of these
        topics. Never raises.
        """
        ...

    def expand(self, shortfalls: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        """Request the required counts and return a result for each, in the given order. Never raises.

        With `validate_only` the brokers check the request and change nothing; EXPANDED then means valid.
        """
        ...


class Leadership(Protocol):
    """Which one of several agents expands."""

    def poll(self) -> int | None:
        """Return the term in which this agent leads, None while it does not.

        The loop calls it about once a second, also while no action is due. Returns within 0.1 s and never
        raises: an agent that cannot reach the cluster loses the leadership. Terms increase over all agents.
        """
        ...

    def confirm(self, term: int) -> bool:
        """Return whether the cluster confirms this agent as the leader of `term`.

        The loop calls it right before a change: an agent that was paused may have lost the leadership. Sends
        a request and takes seconds at most; no answer means no.
        """
        ...

    def close(self) -> None:
        """Give the leadership up at once, so that another agent need not wait for the session timeout."""
        ...


class Journal(Protocol):
    """The append-only history of expansions, from which a new leader resumes."""

    def append(self, entry: ExpansionEntry, term: int) -> None:
        """Write an entry durably: the cluster has acknowledged it when this returns.

        Raises `NoLongerLeaderError` if an agent leads in a newer term, and `ProblemsError` if the cluster did
        not answer in time; the entry may have been written.
        """
        ...

    def latest(self, term: int) -> Mapping[str, ExpansionEntry]:
        """Return application id → the entry with the highest number and, of that, the last stage.

        The loop calls it once at the beginning of each term; after that no earlier leader can append.
        Includes every acknowledged entry. Raises as `append` does.
        """
        ...

    def close(self) -> None: ...


class Instruments(Protocol):
    """Metrics, status and log. No method may raise or block."""

    def record_state(self, state: AgentState) -> None:
        """Record the state after each iteration of the loop.

        `state.failures` is `num-autoscaling-failures`, `ApplicationState.parallelism` the two gauges.
        """
        ...

    def record_event(self, event: AgentEvent) -> None:
        """Log and count an event."""
        ...

    def record_request(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        """Record the duration of a request: `metadata`, `offsets`, `validate`, `expand` or `journal`."""
        ...


class Callback(Protocol):
    """Called after an expansion (`StaticStreamPartitioner#onPartitionExpansion`, KIP-878)."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Return soon; an exception is logged and changes nothing."""
        ...


class Documents(Protocol):
    """The topology documents; they may change while the agent runs."""

    def current(self) -> tuple[TopologyDocument, ...]:
        """Return the last documents without errors; the identical tuple while nothing changed."""
        ...

    def refresh(self) -> Sequence[AgentEvent]:
        """Read files that changed and return the events to report."""
        ...


class Clock(Protocol):
    """The time, and a wait that another thread can end."""

    def monotonic_ms(self) -> int:
        """Return milliseconds for durations; steps in both directions are tolerated."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, for the journal."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 (included) to 1."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait, or return earlier when another thread wakes the clock."""
        ...
