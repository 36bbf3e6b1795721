"""The steps of one expansion: begun, attempted, failed, expanded, notified, given up, cancelled.

Each function takes the state of an application and returns a `Change`.
"""

from collections.abc import Callable, Iterable, Mapping

import attrs

from headwater.agent.decide.assessment import Assessment
from headwater.agent.decide.values import AgentPolicy
from headwater.agent.events import (
    AgentEvent,
    AttemptEnded,
    AttemptFailed,
    Cancelled,
    Expanded,
    ExpansionStarted,
    GaveUp,
    Notified,
)
from headwater.agent.state import ApplicationState, Expansion, Outcome, Phase, TopicResult
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.expansions import ExpansionEntry, Stage, TopicCounts
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.phrases import counted, failure_texts, seconds_phrase


@attrs.frozen
class Change:
    """The new state of an application, the events to report, and the entries for the journal."""

    application: ApplicationState
    events: tuple[AgentEvent, ...] = ()
    entries: tuple[ExpansionEntry, ...] = ()

    def then(self, step: "Callable[[ApplicationState], Change]") -> "Change":
        """Return this change followed by the change of `step`."""
        after = step(self.application)
        return Change(after.application, self.events + after.events, self.entries + after.entries)


@attrs.frozen
class Context:
    """Time, random number and policy of a decision; `clock_ms` is the clock of the agent."""

    clock_ms: int
    wall_ms: int
    jitter: float
    policy: AgentPolicy
    observed_at_ms: int = 0


def begin_expansion(state: ApplicationState, assessment: Assessment, context: Context) -> Change:
    """Start an expansion: partitions are missing, or another client has just added them."""
    expansion = Expansion(
        number=state.last_number + 1,
        started_ms=context.clock_ms,
        before={
            name: min(count, state.settled.get(name, count)) for name, count in assessment.counts.items()
        },
        sources_before={
            name: state.settled_sources.get(name, count) for name, count in assessment.sources.items()
        },
    )
    begun = attrs.evolve(
        state,
        phase=Phase.EXPANDING if assessment.shortfalls else Phase.SETTLING,
        expansion=expansion,
        last_number=expansion.number,
        given_up={},
        attempt_problems=(),
    )
    event = ExpansionStarted(state.id, expansion.number, assessment.shortfalls)
    return Change(
        begun,
        (event,),
        (
            _journal_entry(
                begun, expansion, assessment, Stage.STARTED, context, reason=_reason_of(assessment, state)
            ),
        ),
    )


def resume_expansion(state: ApplicationState, entry: ExpansionEntry, context: Context) -> Change:
    """Continue from the journal. It does not say how long the expansion failed: that clock starts again."""
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
    event = ExpansionStarted(entry.application, entry.number, (), is_resumed=True)
    return Change(attrs.evolve(known, expansion=expansion), (event,))


def apply_results(
    state: ApplicationState, expansion: Expansion, results: tuple[TopicResult, ...], context: Context
) -> Change:
    """Apply the results of an attempt: a success stops the failure clock, a failure starts it."""
    done = {result.topic for result in results if result.outcome is Outcome.EXPANDED}
    succeeded = {result.topic for result in results if result.is_success}
    after = attrs.evolve(
        state,
        attempt_problems=(),
        shortfalls=tuple(item for item in state.shortfalls if item.topic not in succeeded),
        expansion=attrs.evolve(
            reset_failures(expansion) if succeeded else expansion,
            done=tuple(sorted(done | set(expansion.done))),
            retry_at_ms=None,
        ),
    )
    event = AttemptEnded(state.id, expansion.number, results)
    if len(succeeded) == len(results):
        return Change(after, (event,))
    failed = [problem_of_result(state.id, result) for result in results if result.outcome is Outcome.FAILED]
    change = schedule_retry(after, failed, context)
    return attrs.evolve(change, events=(event, *change.events))


def reset_failures(expansion: Expansion) -> Expansion:
    """Reset the clock of `partition.autoscaling.timeout.ms` and the pauses between attempts."""
    return attrs.evolve(expansion, attempts=0, failing_since_ms=None)


def schedule_retry(state: ApplicationState, problems: Iterable[Problem], context: Context) -> Change:
    """Start the failure clock unless it runs, and schedule the next attempt after one with `problems`."""
    expansion = state.expansion
    if expansion is None:
        return Change(state)
    attempts = expansion.attempts + 1
    since = context.clock_ms if expansion.failing_since_ms is None else expansion.failing_since_ms
    pause = context.policy.backoff(attempts, context.jitter)
    failing = attrs.evolve(
        expansion, attempts=attempts, failing_since_ms=since, retry_at_ms=context.clock_ms + pause
    )
    after = attrs.evolve(state, expansion=failing, attempt_problems=tuple(problems))
    reasons = failure_texts(after.attempt_problems)
    event = AttemptFailed(state.id, expansion.number, reasons, pause, context.clock_ms - since)
    return Change(after, (event,))


def schedule_follow_up(state: ApplicationState, assessment: Assessment, context: Context) -> Change:
    """Schedule the final follow-up: all topics have their partitions, and the brokers will learn of it."""
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
    entry = _journal_entry(state, expansion, assessment, Stage.EXPANDED, context)
    event = Expanded(state.id, expansion.number, context.clock_ms - expansion.started_ms)
    return Change(attrs.evolve(state, expansion=settling), (event,), (entry,))


def continue_expansion(expansion: Expansion) -> Expansion:
    """Continue an expansion that was settling: a source was expanded again."""
    return attrs.evolve(expansion, follow_up_at_ms=None)


def widest_change(before: TopicCounts, after: TopicCounts) -> tuple[int, int] | None:
    """Return old and new count of the expanded topic that has the most partitions now, if there is one."""
    grown = [(after[name], count) for name, count in before.items() if after.get(name, 0) > count]
    if not grown:
        return None
    new, old = max(grown)
    return old, new


def follow_up(
    state: ApplicationState,
    expansion: Expansion,
    assessment: Assessment,
    context: Context,
    *,
    is_confirmed: bool,
) -> Change:
    """End the expansion once metadata shows all new partitions and the callback was called."""
    if is_callback_called(state):
        return finish_expansion(state, expansion, assessment, context)
    if not is_follow_up_due(expansion, context.observed_at_ms):
        return Change(state)
    if not is_confirmed:
        return Change(postpone_follow_up(state, expansion, context))
    if widest_change(expansion.before, assessment.counts) is None:
        return finish_expansion(state, expansion, assessment, context)
    return Change(state)


def is_callback_called(state: ApplicationState) -> bool:
    """Return whether the callback of this expansion was called; only the journal entry is missing then."""
    return state.expansion is not None and state.called_number == state.expansion.number


def is_follow_up_due(expansion: Expansion, observed_at_ms: int | None) -> bool:
    """Return whether the cluster was read when the final follow-up was due, or later."""
    due = expansion.follow_up_at_ms
    return due is not None and observed_at_ms is not None and due <= observed_at_ms


def postpone_follow_up(state: ApplicationState, expansion: Expansion, context: Context) -> ApplicationState:
    """Return the state with a later time of the check that follows an expansion."""
    pause = context.policy.backoff(1, context.jitter)
    return attrs.evolve(state, expansion=attrs.evolve(expansion, follow_up_at_ms=context.clock_ms + pause))


def finish_expansion(
    state: ApplicationState, expansion: Expansion, assessment: Assessment, context: Context
) -> Change:
    """End the expansion: the callback was called, or no topic was expanded and it need not be called."""
    counts = widest_change(expansion.before, assessment.counts)
    error = state.called_error if is_callback_called(state) else ""
    over = attrs.evolve(
        state,
        phase=Phase.STEADY,
        expansion=None,
        settled=assessment.counts,
        settled_sources=assessment.sources,
    )
    entry = _journal_entry(state, expansion, assessment, Stage.NOTIFIED, context, reason=error)
    events = (
        (Notified(state.id, expansion.number, *counts, error),)
        if counts and is_callback_called(state)
        else ()
    )
    return Change(over, events, (entry,))


def give_up_expansion(
    state: ApplicationState, expansion: Expansion, assessment: Assessment, context: Context
) -> Change:
    """Give up after too long without a success; the same counts are not tried again."""
    since = expansion.failing_since_ms
    failing_for = 0 if since is None else context.clock_ms - since
    over = attrs.evolve(
        state,
        phase=Phase.GIVEN_UP,
        expansion=None,
        given_up={item.topic: item.required for item in state.shortfalls},
    )
    reason = f"no success for {seconds_phrase(failing_for / 1_000)}"
    if reasons := failure_texts(state.attempt_problems):
        more = f" (and {counted(len(reasons) - 1, 'more problem')})" if len(reasons) > 1 else ""
        reason += f": {reasons[0]}{more}"
    entry = _journal_entry(state, expansion, assessment, Stage.GIVEN_UP, context, reason=reason)
    event = GaveUp(state.id, expansion.number, failing_for, state.shortfalls, state.attempt_problems)
    return Change(over, (event,), (entry,))


def cancel_expansion(
    state: ApplicationState,
    expansion: Expansion,
    assessment: Assessment | None,
    context: Context,
    reason: str,
) -> Change:
    """Return the state without the expansion, the event, and the journal entry with the `reason`."""
    entry = _journal_entry(state, expansion, assessment, Stage.CANCELLED, context, reason=reason)
    event = Cancelled(state.id, expansion.number, reason)
    return Change(attrs.evolve(state, expansion=None), (event,), (entry,))


def _journal_entry(
    state: ApplicationState,
    expansion: Expansion,
    assessment: Assessment | None,
    stage: Stage,
    context: Context,
    *,
    reason: str = "",
) -> ExpansionEntry:
    """Return a journal entry: `after` has the required counts at the start, the actual counts later."""
    counts = assessment.counts if assessment else {}
    if assessment and stage is Stage.STARTED:
        counts = {**counts, **{item.topic: item.required for item in assessment.shortfalls}}
    return ExpansionEntry(
        application=state.id,
        number=expansion.number,
        stage=stage,
        wall_ms=context.wall_ms,
        client_id=context.policy.client_id,
        before=expansion.before,
        after=counts,
        sources_before=expansion.sources_before,
        sources_after=assessment.sources if assessment else {},
        done=expansion.done,
        reason=reason,
    )


def _reason_of(assessment: Assessment, state: ApplicationState) -> str:
    grown = [
        f"{name} grew from {state.settled_sources[name]} to {count}"
        for name, count in sorted(assessment.sources.items())
        if state.settled_sources.get(name, count) < count
    ]
    if grown:
        return "; ".join(grown)
    if state.settled:
        return "partitions are missing"
    return "partitions were missing when the agent first read the cluster"


_WHY = (
    "Internal topics have too few partitions: do not produce to the new partitions of the source topics yet."
)
_THEN = "The agent retries. If it has given up, restart the leader or run `pulumi up`."
_DENIED = "TOPIC_AUTHORIZATION_FAILED"
_SHOW_QUOTAS = (
    "`kafka-configs.sh --bootstrap-server BROKER --describe --entity-type users` shows the quota "
    "`controller_mutation_rate` of users"
)
_REFUSALS: Mapping[str, str] = {
    "POLICY_VIOLATION": "Have the policy or the limit of the brokers changed.",
    "INVALID_REPLICATION_FACTOR": "Start the brokers that are stopped: too few answer for the replicas of "
    "new partitions.",
    "THROTTLING_QUOTA_EXCEEDED": f"Have the quota raised: {_SHOW_QUOTAS}.",
}
"""Kafka's errors with which brokers refuse new partitions → what to do."""
_NOT_CONFIRMED = "LEADERSHIP_NOT_CONFIRMED"
_WITHOUT_ANSWER = frozenset({"_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"})
_LISTS_PERMISSIONS = (
    "`headwater acls FILES --self --for agent --principal User:NAME` prints all permissions that the "
    "agent needs."
)


def problem_of_result(application: str, result: TopicResult) -> Problem:
    """Return the problem of a topic that an attempt for `application` could not expand."""
    topic, partitions = result.topic, f"{result.partitions} partitions"
    if result.error == _DENIED:
        code, expected = ProblemCode.NOT_AUTHORIZED, f"permission {Operation.ALTER} on topic {topic}"
        summary = f"The Kafka brokers do not let the agent add partitions to topic {topic}."
        permission = Permission(ResourceKind.TOPIC, topic, Operation.ALTER)
        fix = f"Grant the agent's user {Operation.ALTER} on the topic: `{permission.command}`. "
        fix += _LISTS_PERMISSIONS
    elif result.error in _REFUSALS:
        code, expected, fix = ProblemCode.REFUSED_BY_BROKERS, partitions, _REFUSALS[result.error]
        summary = f"The Kafka brokers refuse to add partitions to topic {topic}."
    elif result.error == _NOT_CONFIRMED:
        code, expected = ProblemCode.REQUEST_NOT_ANSWERED, "an agent that leads"
        summary = f"The agent did not request partitions for topic {topic}: its leadership was not confirmed."
        fix = (
            "Check that the brokers answer, and whether `headwater agent status` says why the agent cannot "
            "take part in the election."
        )
    elif result.error in _WITHOUT_ANSWER:
        code, expected = ProblemCode.REQUEST_NOT_ANSWERED, partitions
        summary = f"The Kafka brokers did not answer the request for partitions of topic {topic}."
        fix = (
            "Check that the brokers and the controller answer, and whether a quota delays the request: "
            f"{_SHOW_QUOTAS}."
        )
    else:
        code, expected, fix = ProblemCode.REFUSED_BY_BROKERS, partitions, "Check the log of the controller."
        summary = f"The Kafka brokers did not add partitions to topic {topic}."
    return Problem(
        code=code,
        application=application,
        summary=summary,
        topic=topic,
        expected=expected,
        found=": ".join(word for word in (result.error, result.message) if word) or None,
        why=_WHY,
        fix=f"{fix} {_THEN}",
    )
