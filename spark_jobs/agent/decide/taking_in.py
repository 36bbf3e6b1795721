"""Taking in what the loop has come back with."""

from collections.abc import Mapping

import attrs

from infra.model.problems import Problem
from spark_jobs.agent.decide import expansions, sightings
from spark_jobs.agent.decide.expansions import Change, Context
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
from spark_jobs.agent.decide.turn import Turn
from spark_jobs.agent.decide.wanted import wanted
from spark_jobs.agent.events import (
    AgentEvent,
    ClusterReadable,
    ClusterUnreadable,
    LeadershipGained,
    LeadershipLost,
)
from spark_jobs.agent.state import ApplicationState, ExpansionEntry, Phase, Retry


def take_in(observation: Observation, turn: Turn) -> Turn:
    """Return what is known after `observation`, without any assessment of it."""
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
    observation: Recovered | Written | NotWritten | Attempted | Called | Unconfirmed, turn: Turn
) -> Turn:
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


def _looked(turn: Turn, metadata: Metadata) -> Turn:
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


def _unreadable(turn: Turn, problems: tuple[Problem, ...]) -> Turn:
    """A failure of every expansion that waits for this look."""
    state = turn.state
    reading = _again(state.reading, turn.context)
    told = (ClusterUnreadable(problems),) if _texts(state.unreadable) != _texts(problems) else ()
    turn = turn.to(attrs.evolve(state, unreadable=problems, reading=reading), *told)
    return _all_fail(turn, problems)


def _not_written(turn: Turn, problems: tuple[Problem, ...]) -> Turn:
    """Nothing is changed that cannot be written down first."""
    journalling = _again(turn.state.journalling, turn.context)
    turn = turn.to(attrs.evolve(turn.state, journal=problems, journalling=journalling))
    return _all_fail(turn, problems)


def _all_fail(turn: Turn, problems: tuple[Problem, ...]) -> Turn:
    expanding = [app for app in turn.state.applications.values() if app.phase is Phase.EXPANDING]
    return turn.change(*(expansions.failed(app, _texts(problems), turn.context) for app in expanding))


def _led(turn: Turn, term: int | None) -> Turn:
    """Expansions belong to the leader: a new one finds in the journal what was begun."""
    state = turn.state
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


def _recovered(turn: Turn, entries: Mapping[str, ExpansionEntry]) -> Turn:
    state = turn.state
    if state.term is None:
        return turn
    changes = [
        expansions.resumed(state.applications.get(id_, ApplicationState(id=id_)), entry, turn.context)
        for id_, entry in entries.items()
    ]
    recovered = attrs.evolve(state, is_recovered=True, journal=(), journalling=Retry())
    return turn.to(recovered, LeadershipGained(state.term)).change(*changes)


def _attempted(turn: Turn, attempt: Attempted) -> Turn:
    state = turn.state
    turn = turn.to(attrs.evolve(state, sightings=sightings.expanded(state.sightings, attempt.results)))
    changes = []
    for app in state.applications.values():
        lacking = {item.topic for item in app.shortfalls}
        results = tuple(result for result in attempt.results if result.topic in lacking)
        if app.expansion is not None and app.phase is Phase.EXPANDING and results:
            changes.append(expansions.attempted(app, app.expansion, results, turn.context))
    return turn.change(*changes)


def _postponed(turn: Turn, application: str) -> Turn:
    app = turn.state.applications.get(application)
    if app is None or app.expansion is None:
        return turn
    return turn.change(Change(expansions.postponed(app, app.expansion, turn.context)))


def _called(turn: Turn, application: str, error: str) -> Turn:
    app = turn.state.applications.get(application)
    if app is None or app.expansion is None:
        return turn
    called = attrs.evolve(app, called_number=app.expansion.number, called_error=error)
    return turn.change(Change(called))


def _again(retry: Retry, context: Context) -> Retry:
    attempts = retry.attempts + 1
    return Retry(attempts, context.clock_ms + context.policy.backoff(attempts, context.jitter))


def _texts(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    return tuple(
        f"{problem.summary} {problem.found}" if problem.found else problem.summary for problem in problems
    )
