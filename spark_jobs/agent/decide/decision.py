"""The decision: an observation is taken in, applications are assessed anew, the next action follows."""

from collections.abc import Mapping

import attrs

from infra.model.problems import Problem
from spark_jobs.agent.decide import expansions, sightings
from spark_jobs.agent.decide.actions import Action
from spark_jobs.agent.decide.assessment import Assessment, assess, held_back
from spark_jobs.agent.decide.clock import Moment, advance
from spark_jobs.agent.decide.expansions import Change, Context
from spark_jobs.agent.decide.next_step import next_step
from spark_jobs.agent.decide.observations import (
    Attempted,
    Called,
    Deposed,
    Led,
    Metadata,
    NotWritten,
    Observation,
    Recovered,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from spark_jobs.agent.decide.policy import AgentPolicy
from spark_jobs.agent.decide.standing import stand
from spark_jobs.agent.decide.wanted import wanted
from spark_jobs.agent.events import (
    AgentEvent,
    ClusterReadable,
    ClusterUnreadable,
    LeadershipGained,
    LeadershipLost,
)
from spark_jobs.agent.state import AgentState, ApplicationState, ExpansionEntry, Phase, Retry


@attrs.frozen
class Decision:
    """The next state, what is to be told, and what to do: `action` now, or nothing before `wake_ms`.

    `wake_ms` is a time to wait in milliseconds, counted from the decision.
    """

    state: AgentState
    events: tuple[AgentEvent, ...]
    action: Action | None
    wake_ms: int


def decide(observation: Observation, state: AgentState, now: Moment, policy: AgentPolicy) -> Decision:
    """Return what follows from `observation`. Deterministic; raises for no observation."""
    state = advance(state, now)
    context = Context(state.clock_ms, now.wall_ms, now.jitter, policy)
    turn = _take_in(observation, _Turn(state, context))
    turn = _assessed(turn)
    action, wake_ms = next_step(turn.state, policy)
    return Decision(turn.state, turn.events, action, wake_ms)


@attrs.frozen
class _Turn:
    state: AgentState
    context: Context
    events: tuple[AgentEvent, ...] = ()

    def to(self, state: AgentState, *events: AgentEvent) -> "_Turn":
        return attrs.evolve(self, state=state, events=(*self.events, *events))

    def change(self, *changes: Change) -> "_Turn":
        """Put changed applications in place; what the journal is to know queues up."""
        applications = dict(self.state.applications)
        applications |= {change.application.id: change.application for change in changes}
        entries = [entry for change in changes for entry in change.entries]
        outbox = (*self.state.outbox, *entries) if self.state.is_leader else ()
        return self.to(
            attrs.evolve(self.state, applications=applications, outbox=outbox),
            *(event for change in changes for event in change.events),
        )


def _take_in(observation: Observation, turn: _Turn) -> _Turn:
    match observation:
        case Tick(look_now):
            wants_look = turn.state.is_look_wanted or look_now
            return turn.to(attrs.evolve(turn.state, is_look_wanted=wants_look))
        case Metadata():
            return _looked(turn, observation)
        case Unreadable(problems):
            return _unreadable(turn, problems)
        case Led(term):
            return _led(turn, term)
        case Deposed():
            refused = -1 if turn.state.term is None else turn.state.term
            deposed = attrs.evolve(turn.state, deposed_term=max(turn.state.deposed_term, refused))
            return _led(turn.to(deposed), None)
        case _:
            return _take_in_result(observation, turn)


def _take_in_result(
    observation: Recovered | Written | NotWritten | Attempted | Called | Unconfirmed, turn: _Turn
) -> _Turn:
    match observation:
        case Recovered(entries):
            return _recovered(turn, entries)
        case Written(entries):
            outbox = tuple(entry for entry in turn.state.outbox if entry not in entries)
            return turn.to(attrs.evolve(turn.state, outbox=outbox, journal=(), journalling=Retry()))
        case NotWritten(problems):
            return _not_written(turn, problems)
        case Attempted():
            return _attempted(turn, observation)
        case Called(application, error):
            return _called(turn, application, error)
        case Unconfirmed(application):
            return _postponed(turn, application)


def _looked(turn: _Turn, metadata: Metadata) -> _Turn:
    state, policy = turn.state, turn.context.policy
    seen = sightings.seen(state.sightings, metadata.counts, state.clock_ms, policy.lag_ms)
    looked = attrs.evolve(
        state,
        sightings=seen,
        wanted=wanted(metadata.documents, sightings.counts(seen), state.wanted),
        observed_at_ms=state.clock_ms,
        looks=state.looks + 1,
        is_look_wanted=False,
        unreadable=(),
        reading=Retry(),
    )
    return turn.to(looked, *((ClusterReadable(),) if state.unreadable else ()))


def _unreadable(turn: _Turn, problems: tuple[Problem, ...]) -> _Turn:
    """A failure of every expansion that waits for this look."""
    state = turn.state
    reading = _again(state.reading, turn.context)
    told = (ClusterUnreadable(problems),) if _texts(state.unreadable) != _texts(problems) else ()
    turn = turn.to(attrs.evolve(state, unreadable=problems, reading=reading), *told)
    return _all_fail(turn, problems)


def _not_written(turn: _Turn, problems: tuple[Problem, ...]) -> _Turn:
    """Nothing is changed that cannot be written down first."""
    journalling = _again(turn.state.journalling, turn.context)
    turn = turn.to(attrs.evolve(turn.state, journal=problems, journalling=journalling))
    return _all_fail(turn, problems)


def _all_fail(turn: _Turn, problems: tuple[Problem, ...]) -> _Turn:
    expanding = [app for app in turn.state.applications.values() if app.phase is Phase.EXPANDING]
    return turn.change(*(expansions.failed(app, _texts(problems), turn.context) for app in expanding))


def _led(turn: _Turn, term: int | None) -> _Turn:
    """Expansions belong to the leader: a new one finds in the journal what was begun."""
    state = turn.state
    if term is not None and term <= state.deposed_term:
        term = None
    if term == state.term:
        return turn
    events: list[AgentEvent] = [LeadershipLost(state.term)] if state.term is not None else []
    follower = attrs.evolve(
        state,
        term=term,
        is_recovered=False,
        is_look_wanted=True,
        outbox=(),
        journal=(),
        journalling=Retry(),
        applications={
            id_: attrs.evolve(app, expansion=None, given_up={}) for id_, app in state.applications.items()
        },
    )
    return turn.to(follower, *events)


def _recovered(turn: _Turn, entries: Mapping[str, ExpansionEntry]) -> _Turn:
    state = turn.state
    if state.term is None:
        return turn
    changes = [
        expansions.resumed(state.applications.get(id_, ApplicationState(id=id_)), entry, turn.context)
        for id_, entry in entries.items()
    ]
    recovered = attrs.evolve(state, is_recovered=True, journal=(), journalling=Retry())
    return turn.to(recovered, LeadershipGained(state.term)).change(*changes)


def _attempted(turn: _Turn, attempt: Attempted) -> _Turn:
    state = turn.state
    turn = turn.to(attrs.evolve(state, sightings=sightings.expanded(state.sightings, attempt.results)))
    changes = []
    for app in state.applications.values():
        lacking = {item.topic for item in app.shortfalls}
        results = tuple(result for result in attempt.results if result.topic in lacking)
        if app.expansion is not None and app.phase is Phase.EXPANDING and results:
            tried = attrs.evolve(app.expansion, attempted_look=state.looks)
            changes.append(expansions.attempted(app, tried, results, turn.context))
    return turn.change(*changes)


def _postponed(turn: _Turn, application: str) -> _Turn:
    app = turn.state.applications.get(application)
    if app is None or app.expansion is None:
        return turn
    return turn.change(Change(expansions.postponed(app, app.expansion, turn.context)))


def _called(turn: _Turn, application: str, error: str) -> _Turn:
    app = turn.state.applications.get(application)
    if app is None or app.expansion is None:
        return turn
    called = attrs.evolve(app, called_number=app.expansion.number, called_error=error)
    return turn.change(Change(called))


def _assessed(turn: _Turn) -> _Turn:
    """Hold every application against the counts that are believed by now."""
    state = turn.state
    if state.observed_at_ms is None:
        return turn
    live = sightings.counts(state.sightings)
    known = {
        compiled.application.id: state.applications.get(
            compiled.application.id, ApplicationState(id=compiled.application.id)
        )
        for compiled in state.wanted.applications
    }
    seen = {
        compiled.application.id: assess(compiled, live, known[compiled.application.id].settled)
        for compiled in state.wanted.applications
    }
    context = attrs.evolve(turn.context, observed_at_ms=state.observed_at_ms)
    leads = state.is_leader and state.is_recovered
    held = held_back(seen, [id_ for id_, one in seen.items() if one.is_expandable])
    changes = [
        stand(
            known[id_],
            one,
            context,
            leads=leads,
            is_held=id_ in held,
            is_confirmed=all(state.sightings[name].lower_since_ms is None for name in one.counts),
        )
        for id_, one in seen.items()
    ]
    return _without_others(_expired(turn.change(*changes), seen), seen)


def _expired(turn: _Turn, seen: Mapping[str, Assessment]) -> _Turn:
    """Give up where nothing has succeeded for `partition.autoscaling.timeout.ms`."""
    late = [
        expansions.gave_up(app, app.expansion, seen[app.id], turn.context)
        for app in turn.state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
        if turn.context.clock_ms - app.expansion.failing_since_ms >= app.timeout_ms
    ]
    turn = turn.change(*late)
    return turn.to(attrs.evolve(turn.state, failures=turn.state.failures + len(late)))


def _without_others(turn: _Turn, seen: Mapping[str, Assessment]) -> _Turn:
    """Forget applications that have no document any more."""
    gone = [app for app in turn.state.applications.values() if app.id not in seen]
    if not gone:
        return turn
    turn = turn.change(
        *(
            expansions.cancelled(app, app.expansion, None, turn.context, "its document is gone")
            for app in gone
            if app.expansion is not None
        )
    )
    left = {id_: app for id_, app in turn.state.applications.items() if id_ in seen}
    return turn.to(attrs.evolve(turn.state, applications=left))


def _again(retry: Retry, context: Context) -> Retry:
    attempts = retry.attempts + 1
    return Retry(attempts, context.clock_ms + context.policy.backoff(attempts, context.jitter))


def _texts(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    return tuple(
        f"{problem.summary} {problem.found}" if problem.found else problem.summary for problem in problems
    )
