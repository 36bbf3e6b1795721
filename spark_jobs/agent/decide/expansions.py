"""The life of one expansion: begun, tried, failing, expanded, told to the callback, or given up.

Each function takes an application's state and returns what becomes of it, with what is to be told and what
the journal is to know.
"""

from collections.abc import Callable, Iterable

import attrs

from spark_jobs.agent.decide.assessment import Assessment
from spark_jobs.agent.decide.policy import AgentPolicy
from spark_jobs.agent.events import (
    AgentEvent,
    AttemptEnded,
    AttemptFailed,
    Cancelled,
    Expanded,
    ExpansionStarted,
    GaveUp,
    Notified,
)
from spark_jobs.agent.state import (
    ApplicationState,
    Expansion,
    ExpansionEntry,
    Outcome,
    Phase,
    Stage,
    TopicCounts,
    TopicResult,
)


@attrs.frozen
class Change:
    """What becomes of an application: its new state, what is to be told, what the journal is to know."""

    application: ApplicationState
    events: tuple[AgentEvent, ...] = ()
    entries: tuple[ExpansionEntry, ...] = ()

    def then(self, step: "Callable[[ApplicationState], Change]") -> "Change":
        """Return this change and, after it, that of `step`."""
        after = step(self.application)
        return Change(after.application, self.events + after.events, self.entries + after.entries)


@attrs.frozen
class Context:
    """When, how and by whom; `clock_ms` is the agent's own clock."""

    clock_ms: int
    wall_ms: int
    jitter: float
    policy: AgentPolicy
    observed_at_ms: int = 0


def begin(state: ApplicationState, seen: Assessment, context: Context) -> Change:
    """Start an expansion: partitions lack, or somebody else has just added them."""
    expansion = Expansion(
        number=state.last_number + 1,
        started_ms=context.clock_ms,
        before={name: min(count, state.settled.get(name, count)) for name, count in seen.counts.items()},
        sources_before={name: state.settled_sources.get(name, count) for name, count in seen.sources.items()},
    )
    begun = attrs.evolve(
        state,
        phase=Phase.EXPANDING if seen.shortfalls else Phase.SETTLING,
        expansion=expansion,
        last_number=expansion.number,
        given_up={},
    )
    told = ExpansionStarted(state.id, expansion.number, seen.shortfalls)
    return Change(
        begun, (told,), (_entry(begun, expansion, seen, Stage.STARTED, context, reason=_reason(seen, state)),)
    )


def resumed(state: ApplicationState, entry: ExpansionEntry, context: Context) -> Change:
    """Go on from what stands in the journal; how long it failed before is not known: that starts anew."""
    is_over = entry.stage is Stage.NOTIFIED
    known = attrs.evolve(
        state,
        last_number=entry.number,
        settled=entry.after if is_over else entry.before,
        settled_sources=entry.sources_after if is_over else entry.sources_before,
    )
    if entry.stage.is_final:
        return Change(known)
    settles_at = context.clock_ms + context.policy.settle_ms
    expansion = Expansion(
        number=entry.number,
        started_ms=context.clock_ms,
        before=entry.before,
        sources_before=entry.sources_before,
        done=entry.done,
        follow_up_at_ms=settles_at if entry.stage is Stage.EXPANDED else None,
    )
    told = ExpansionStarted(entry.application, entry.number, (), is_resumed=True)
    return Change(attrs.evolve(known, expansion=expansion), (told,))


def attempted(
    state: ApplicationState, expansion: Expansion, results: tuple[TopicResult, ...], context: Context
) -> Change:
    """Take in what an attempt brought: any success stops the failure clock, a failure after it starts it."""
    done = {result.topic for result in results if result.outcome is Outcome.EXPANDED}
    succeeded = {result.topic for result in results if result.is_success}
    after = attrs.evolve(
        state,
        shortfalls=tuple(item for item in state.shortfalls if item.topic not in succeeded),
        expansion=attrs.evolve(
            unhindered(expansion) if succeeded else expansion,
            done=tuple(sorted(done | set(expansion.done))),
            retry_at_ms=None,
        ),
    )
    told = AttemptEnded(state.id, expansion.number, results)
    reasons = [_text(result) for result in results if result.outcome is Outcome.FAILED]
    if len(succeeded) == len(results):
        return Change(after, (told,))
    change = failed(after, reasons, context)
    return attrs.evolve(change, events=(told, *change.events))


def unhindered(expansion: Expansion) -> Expansion:
    """Any success resets the clock of `partition.autoscaling.timeout.ms`, and the pauses between attempts."""
    return attrs.evolve(expansion, attempts=0, failing_since_ms=None)


def failed(state: ApplicationState, reasons: Iterable[str], context: Context) -> Change:
    """Start the failure clock unless it runs, and schedule the follow-up."""
    expansion = state.expansion
    if expansion is None:
        return Change(state)
    attempts = expansion.attempts + 1
    since = context.clock_ms if expansion.failing_since_ms is None else expansion.failing_since_ms
    pause = context.policy.backoff(attempts, context.jitter)
    failing = attrs.evolve(
        expansion, attempts=attempts, failing_since_ms=since, retry_at_ms=context.clock_ms + pause
    )
    told = AttemptFailed(state.id, expansion.number, tuple(reasons), pause, context.clock_ms - since)
    return Change(attrs.evolve(state, expansion=failing), (told,))


def expanded(state: ApplicationState, seen: Assessment, context: Context) -> Change:
    """All topics have their partitions: the final follow-up comes when the brokers have heard of it."""
    expansion = state.expansion
    if expansion is None:
        return Change(state)
    settling = attrs.evolve(
        expansion,
        attempts=0,
        failing_since_ms=None,
        retry_at_ms=None,
        follow_up_at_ms=context.clock_ms + context.policy.settle_ms,
    )
    entry = _entry(state, expansion, seen, Stage.EXPANDED, context)
    told = Expanded(state.id, expansion.number, context.clock_ms - expansion.started_ms)
    return Change(attrs.evolve(state, expansion=settling), (told,), (entry,))


def again(expansion: Expansion) -> Expansion:
    """A source grew once more while the expansion settled: it goes on."""
    return attrs.evolve(expansion, follow_up_at_ms=None)


def widest(before: TopicCounts, after: TopicCounts) -> tuple[int, int] | None:
    """Return old and new count of the topic that has the most partitions now, of those that have grown."""
    grown = [(after[name], count) for name, count in before.items() if after.get(name, 0) > count]
    new, old = max(grown, default=(0, 0))
    return (old, new) if grown else None


def follow_up(
    state: ApplicationState, expansion: Expansion, seen: Assessment, context: Context, *, is_confirmed: bool
) -> Change:
    """The final follow-up, once metadata shows all new partitions; then the callback, then it is over."""
    if is_told(state):
        return finished(state, expansion, seen, context)
    if not is_due(expansion, context.observed_at_ms):
        return Change(state)
    if not is_confirmed:
        return Change(postponed(state, expansion, context))
    if widest(expansion.before, seen.counts) is None:
        return finished(state, expansion, seen, context)
    return Change(state)


def is_told(state: ApplicationState) -> bool:
    """Whether the callback of the present expansion was called; all that lacks is the line in the journal."""
    return state.expansion is not None and state.called_number == state.expansion.number


def is_due(expansion: Expansion, observed_at_ms: int | None) -> bool:
    """Whether the cluster was looked at when the final follow-up was due, or later."""
    due = expansion.follow_up_at_ms
    return due is not None and observed_at_ms is not None and due <= observed_at_ms


def postponed(state: ApplicationState, expansion: Expansion, context: Context) -> ApplicationState:
    pause = context.policy.backoff(1, context.jitter)
    return attrs.evolve(state, expansion=attrs.evolve(expansion, follow_up_at_ms=context.clock_ms + pause))


def finished(state: ApplicationState, expansion: Expansion, seen: Assessment, context: Context) -> Change:
    """The callback was called; if no topic has grown there was nothing to call it for."""
    counts = widest(expansion.before, seen.counts)
    error = state.called_error if is_told(state) else ""
    over = attrs.evolve(
        state, phase=Phase.STEADY, expansion=None, settled=seen.counts, settled_sources=seen.sources
    )
    entry = _entry(state, expansion, seen, Stage.NOTIFIED, context, reason=error)
    told = (Notified(state.id, expansion.number, *counts, error),) if counts and is_told(state) else ()
    return Change(over, told, (entry,))


def gave_up(state: ApplicationState, expansion: Expansion, seen: Assessment, context: Context) -> Change:
    """No success for too long: the same counts are not tried again."""
    since = expansion.failing_since_ms
    failing_for = 0 if since is None else context.clock_ms - since
    over = attrs.evolve(
        state,
        phase=Phase.GIVEN_UP,
        expansion=None,
        given_up={item.topic: item.wanted for item in state.shortfalls},
    )
    entry = _entry(
        state, expansion, seen, Stage.GIVEN_UP, context, reason=f"no success for {failing_for:,} ms"
    )
    told = GaveUp(state.id, expansion.number, failing_for, state.shortfalls)
    return Change(over, (told,), (entry,))


def cancelled(
    state: ApplicationState, expansion: Expansion, seen: Assessment | None, context: Context, reason: str
) -> Change:
    entry = _entry(state, expansion, seen, Stage.CANCELLED, context, reason=reason)
    told = Cancelled(state.id, expansion.number, reason)
    return Change(attrs.evolve(state, expansion=None), (told,), (entry,))


def _entry(
    state: ApplicationState,
    expansion: Expansion,
    seen: Assessment | None,
    stage: Stage,
    context: Context,
    *,
    reason: str = "",
) -> ExpansionEntry:
    """`after` are the counts that are wanted while it goes on, and those that are there when it is over."""
    counts = seen.counts if seen else {}
    if seen and stage is Stage.STARTED:
        counts = {**counts, **{item.topic: item.wanted for item in seen.shortfalls}}
    return ExpansionEntry(
        application=state.id,
        number=expansion.number,
        stage=stage,
        wall_ms=context.wall_ms,
        client_id=context.policy.client_id,
        before=expansion.before,
        after=counts,
        sources_before=expansion.sources_before,
        sources_after=seen.sources if seen else {},
        done=expansion.done,
        reason=reason,
    )


def _reason(seen: Assessment, state: ApplicationState) -> str:
    grown = [
        f"{name} grew from {state.settled_sources[name]} to {count}"
        for name, count in sorted(seen.sources.items())
        if state.settled_sources.get(name, count) < count
    ]
    if grown:
        return "; ".join(grown)
    return "partitions lacked when the agent first looked" if not state.settled else "partitions lack"


def _text(result: TopicResult) -> str:
    return ": ".join(word for word in (result.topic, result.error, result.message) if word)
