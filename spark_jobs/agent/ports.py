"""What the loop needs from around it. The loop is one thread; every method returns in bounded time."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from infra.model.topology import TopologyDocument
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.state import AgentState, ExpansionEntry, Shortfall, TopicCounts, TopicResult


class NoLongerLeaderError(Exception):
    """A newer term has begun: nothing may be written or changed in this one."""


class Cluster(Protocol):
    """The topics of one cluster."""

    def partition_counts(self) -> TopicCounts:
        """Return the counts of all topics that the user may see, by one metadata request.

        Raises `ProblemsError` when there is no answer in time.
        """
        ...

    def expand(self, lacking: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        """Ask for the counts that are wanted; return a result for each, in the given order. Never raises.

        `validate_only` has the brokers check the request and change nothing; EXPANDED then means valid.
        """
        ...

    def close(self) -> None: ...


class Leadership(Protocol):
    """Which one of several agents expands."""

    def poll(self) -> int | None:
        """Return the term in which this agent leads, None while it does not.

        Called about once a second, also while there is nothing to do; returns within 0.1 s and never raises:
        a cluster that cannot be reached in the long run is a lost leadership. Terms only grow, over all
        agents.
        """
        ...

    def confirm(self, term: int) -> bool:
        """Return whether the cluster itself still knows this agent as the leader of `term`.

        Called right before something is changed: an agent that was paused must not act on what it believes.
        May ask the cluster, within seconds; no answer means no.
        """
        ...

    def close(self) -> None:
        """Give the leadership up at once, so that another agent need not wait for a time-out."""
        ...


class Journal(Protocol):
    """Who expanded what, when and why; append-only. Also where a new leader finds what was begun."""

    def append(self, entry: ExpansionEntry, term: int) -> None:
        """Write durably (acknowledged by the cluster) before returning.

        Raises `NoLongerLeaderError` when an agent with a newer term has taken over, `ProblemsError` when the
        cluster does not answer in time; then it is not known whether the entry was written.
        """
        ...

    def latest(self, term: int) -> Mapping[str, ExpansionEntry]:
        """Return application id → the entry with the highest number and, in it, the furthest stage.

        Called once at the beginning of each term, after which no earlier leader can append any more. Sees
        every acknowledged entry. Raises like `append`.
        """
        ...

    def close(self) -> None: ...


class Instruments(Protocol):
    """Where metrics, status and logs come from. Nothing here may raise or wait."""

    def observed(self, state: AgentState) -> None:
        """The state after each turn of the loop: phases, parallelism, problems, leadership, failures.

        `state.failures` is `num-autoscaling-failures`, `ApplicationState.parallelism` the two gauges.
        """
        ...

    def told(self, event: AgentEvent) -> None:
        """Something happened; failed attempts (`AttemptFailed`), retries and convergence (`Expanded`) too."""
        ...

    def asked(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        """An admin request is over: `metadata`, `validate`, `expand` or `journal`."""
        ...


class Callback(Protocol):
    """Told of finished expansions (`StaticStreamPartitioner#onPartitionExpansion`)."""

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Return soon; what it raises is logged and changes nothing."""
        ...


class Documents(Protocol):
    """The topology documents; they may change while the agent runs."""

    def current(self) -> tuple[TopologyDocument, ...]:
        """Return the documents as last read without errors; the very same tuple while nothing changed."""
        ...

    def refresh(self) -> Sequence[AgentEvent]:
        """Read files that changed; return what is to be told."""
        ...


class Clock(Protocol):
    """The time, and the way to wait for it."""

    def monotonic_ms(self) -> int:
        """Return milliseconds for durations; steps (also backwards) are tolerated."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, for the journal."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 (included) to 1."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait, or less if something woke it (`wake`, a stop)."""
        ...
