"""What an observation changes in the state of the agent, with the partition counts that it uses."""

from collections.abc import Iterable, Mapping

import attrs

from headwater.agent.decide import expansions
from headwater.agent.decide.expansions import Change, Context
from headwater.agent.decide.values import (
    Attempted,
    CallbackCalled,
    Deposed,
    Metadata,
    NotWritten,
    Observation,
    OffsetMetadataRead,
    Recovered,
    TermObserved,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from headwater.agent.events import (
    AgentEvent,
    ClusterReadable,
    ClusterUnreadable,
    JournalAvailable,
    JournalUnavailable,
    LeadershipGained,
    LeadershipLost,
)
from headwater.agent.state import (
    AgentState,
    ApplicationState,
    ObservedCount,
    OffsetTexts,
    Phase,
    Requirements,
    Retry,
    TopicResult,
)
from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication, TopicKind, reshard_journal, undeclared_inputs
from headwater.model.expansions import ExpansionEntry, TopicCounts
from headwater.model.offset_metadata import decode_number, has_reshard, shows_processors
from headwater.model.problems import AGENT, Problem
from headwater.model.topology import Lifecycle, TopologyDocument
from headwater.planner.phrases import failure_texts


@attrs.frozen
class PendingDecision:
    """Each step returns a new one. Nothing is reported or executed before the decision is complete."""

    state: AgentState
    context: Context
    events: tuple[AgentEvent, ...] = ()

    def with_state(self, state: AgentState, *events: AgentEvent) -> "PendingDecision":
        return attrs.evolve(self, state=state, events=(*self.events, *events))

    def with_changes(self, *changes: Change) -> "PendingDecision":
        """Return the decision with changed applications; journal entries are queued if this agent leads."""
        applications = dict(self.state.applications)
        applications |= {change.application.id: change.application for change in changes}
        entries = [entry for change in changes for entry in change.entries]
        outbox = (*self.state.outbox, *entries) if self.state.is_leader else ()
        return self.with_state(
            attrs.evolve(self.state, applications=applications, outbox=outbox),
            *(event for change in changes for event in change.events),
        )


def _counts_after_metadata(
    observed: Mapping[str, ObservedCount], counts: TopicCounts, clock_ms: int, lag_ms: int
) -> Mapping[str, ObservedCount]:
    """Return the observed counts after the cluster was read.

    A higher count is used at once: an expansion starts with it. A lower count, or a missing topic, can be the
    answer of a broker that lags behind. It is used when no other count was observed for `lag_ms`.
    """
    updated = {
        name: _update_count(observed.get(name), counts.get(name, 0), clock_ms, lag_ms)
        for name in counts.keys() | observed.keys()
    }
    return {name: count for name, count in updated.items() if count.partitions}


def _update_count(known: ObservedCount | None, partitions: int, clock_ms: int, lag_ms: int) -> ObservedCount:
    if known is None or partitions >= known.partitions:
        return ObservedCount(partitions)
    if known.lower_since_ms is None:
        return ObservedCount(known.partitions, clock_ms)
    return ObservedCount(partitions) if clock_ms - known.lower_since_ms >= lag_ms else known


def _counts_after_attempt(
    observed: Mapping[str, ObservedCount], results: Iterable[TopicResult]
) -> Mapping[str, ObservedCount]:
    """Return the observed counts after an attempt: an answer of the controller counts before the metadata."""
    changed = dict(observed)
    for result in results:
        known = changed.get(result.topic)
        if result.is_success and known is not None and result.partitions > known.partitions:
            changed[result.topic] = ObservedCount(result.partitions)
    return changed


def used_counts(observed: Mapping[str, ObservedCount]) -> TopicCounts:
    """Return topic → partition count."""
    return {name: count.partitions for name, count in observed.items()}


def next_confirmation(observed: Iterable[ObservedCount], lag_ms: int) -> int | None:
    """Return when the first of the lower counts will have been observed for `lag_ms`, if there is one."""
    since = [count.lower_since_ms for count in observed if count.lower_since_ms is not None]
    return min(since) + lag_ms if since else None


def update_requirements(
    documents: tuple[TopologyDocument, ...], counts: TopicCounts, before: Requirements
) -> Requirements:
    """Return what active documents require with these counts; `before` itself if no input has changed."""
    if before.documents is documents and _select_relevant(before.applications, counts) == before.counts:
        return before
    active = [document for document in documents if document.application.lifecycle is Lifecycle.ACTIVE]
    applications = compile_documents(active, counts, AGENT)
    return Requirements(documents, _select_relevant(applications, counts), applications)


def _metadata_to_read(
    applications: tuple[CompiledApplication, ...], counts: TopicCounts
) -> Mapping[str, TopicCounts]:
    """Return application → the topics with whose offsets is committed what its counts do not show.

    This is the number of processors, where some may have been removed or the document does not declare it,
    and the journal of a reshard.
    """
    found = {
        each.application.id: {
            **_inputs_of_fewer(each, counts),
            **undeclared_inputs(each, counts),
            **reshard_journal(each, counts),
        }
        for each in applications
    }
    return {id_: topics for id_, topics in found.items() if topics}


def _inputs_of_fewer(application: CompiledApplication, counts: TopicCounts) -> TopicCounts:
    """Return the inputs of its processors, where some of these may have been removed (KIP-287).

    So it is if a changelog topic has more partitions than processors are declared.
    """
    parts = [part for part in application.subtopologies if part.processors is not None]
    changelogs = {name: part.processors or 0 for part in parts for name in part.changelog_topics}
    if not any(counts.get(name, 0) > declared for name, declared in changelogs.items()):
        return {}
    inputs = sorted({name for part in parts for name in part.sources if name in counts})
    return {name: counts[name] for name in inputs}


def _widest_changelog(application: CompiledApplication, counts: TopicCounts) -> int:
    """Return the largest partition count of its changelog topics; 0 = none exists."""
    topics = (topic for topic in application.internal_topics if topic.kind is TopicKind.CHANGELOG)
    return max((counts.get(topic.name, 0) for topic in topics), default=0)


def _select_relevant(applications: tuple[CompiledApplication, ...], counts: TopicCounts) -> TopicCounts:
    """Return the counts that the result can depend on: patterns match any topic except internal ones."""
    if any(application.source_patterns for application in applications):
        internal = {topic.name for application in applications for topic in application.internal_topics}
        return {name: count for name, count in counts.items() if name not in internal}
    names = {
        name
        for application in applications
        for name in (
            *application.external_sources,
            *application.missing_sources,
            *application.global_topics,
            *(sink.topic for sink in application.sinks),
        )
    }
    return {name: counts[name] for name in names if name in counts}


def apply_observation(observation: Observation, pending: PendingDecision) -> PendingDecision:
    """Return the state after `observation`, applications not yet assessed."""
    state = pending.state
    match observation:
        case Tick(read_now):
            is_requested = state.is_read_requested or read_now
            return pending.with_state(attrs.evolve(state, is_read_requested=is_requested))
        case Metadata():
            return _apply_metadata(pending, observation)
        case OffsetMetadataRead(found):
            return _apply_offset_metadata(pending, found)
        case Unreadable(problems):
            return _apply_unreadable(pending, problems)
        case TermObserved(term):
            return _apply_term(pending, term)
        case Deposed():
            refused = -1 if state.term is None else state.term
            deposed = attrs.evolve(state, deposed_term=max(state.deposed_term, refused))
            return _apply_term(pending.with_state(deposed), None)
        case Recovered(entries):
            return _apply_recovered(pending, entries)
        case Written(entries):
            outbox = tuple(entry for entry in state.outbox if entry not in entries)
            written = attrs.evolve(state, outbox=outbox, journal_problems=(), journal_retry=Retry())
            return pending.with_state(written, *_journal_events(state))
        case NotWritten(problems):
            return _apply_not_written(pending, problems)
        case Attempted():
            return _apply_attempt(pending, observation)
        case CallbackCalled(application, error):
            return _apply_called(pending, application, error)
        case Unconfirmed(application):
            return _postpone_application(pending, application)


def _apply_metadata(pending: PendingDecision, metadata: Metadata) -> PendingDecision:
    state, policy = pending.state, pending.context.policy
    observed = _counts_after_metadata(state.observed_counts, metadata.counts, state.clock_ms, policy.lag_ms)
    counts = used_counts(observed)
    required = update_requirements(metadata.documents, counts, state.requirements)
    due = _metadata_to_read(required.applications, counts)
    updated = attrs.evolve(
        state,
        observed_counts=observed,
        due_metadata=due,
        processors={id_: number for id_, number in state.processors.items() if id_ in due},
        undeclared=state.undeclared & due.keys(),
        resharded=state.resharded & due.keys(),
        unread_metadata={},
        requirements=required,
        observed_at_ms=state.clock_ms,
        reads=state.reads + 1,
        is_read_requested=False,
        read_problems=(),
        read_retry=Retry(),
    )
    return pending.with_state(updated, *((ClusterReadable(),) if state.read_problems else ()))


def _apply_offset_metadata(pending: PendingDecision, found: Mapping[str, OffsetTexts]) -> PendingDecision:
    """Note what was read; after a failure, what was read before is kept."""
    state = pending.state
    read = {id_: texts for id_, texts in found.items() if not isinstance(texts, Problem)}
    unread = {id_: problem for id_, problem in found.items() if isinstance(problem, Problem)}
    applications = {each.application.id: each for each in state.requirements.applications}
    declared = {id_ for id_, each in applications.items() if each.application.processors is not None}
    undeclared = {id_ for id_, texts in read.items() if id_ not in declared and shows_processors(texts)}
    counts = used_counts(state.observed_counts)
    numbers = {
        id_: decode_number(read[id_], _widest_changelog(applications[id_], counts))
        for id_ in read.keys() & applications.keys() & (declared | undeclared)
    }
    updated = attrs.evolve(
        state,
        due_metadata={id_: topics for id_, topics in state.due_metadata.items() if id_ not in found},
        processors={
            **{id_: number for id_, number in state.processors.items() if id_ not in read},
            **{id_: number for id_, number in numbers.items() if number is not None},
        },
        undeclared=state.undeclared - read.keys() | undeclared,
        resharded=state.resharded - read.keys() | {id_ for id_, texts in read.items() if has_reshard(texts)},
        unread_metadata={**state.unread_metadata, **unread},
        observed_at_ms=state.clock_ms,
    )
    return pending.with_state(updated)


def _apply_unreadable(pending: PendingDecision, problems: tuple[Problem, ...]) -> PendingDecision:
    """Count a failed read as a failure of every expansion that waits for it."""
    state = pending.state
    retry = _next_retry(state.read_retry, pending.context)
    events = (
        (ClusterUnreadable(problems),)
        if failure_texts(state.read_problems) != failure_texts(problems)
        else ()
    )
    pending = pending.with_state(attrs.evolve(state, read_problems=problems, read_retry=retry), *events)
    return _fail_expansions(pending, problems)


def _apply_not_written(pending: PendingDecision, problems: tuple[Problem, ...]) -> PendingDecision:
    """Count it as a failure of every expansion: nothing is changed before it is in the journal."""
    state = pending.state
    retry = _next_retry(state.journal_retry, pending.context)
    is_new = failure_texts(state.journal_problems) != failure_texts(problems)
    pending = pending.with_state(
        attrs.evolve(state, journal_problems=problems, journal_retry=retry),
        *((JournalUnavailable(problems),) if is_new else ()),
    )
    return _fail_expansions(pending, problems)


def _journal_events(state: AgentState) -> tuple[AgentEvent, ...]:
    """Return what to report when the journal was read or written."""
    return (JournalAvailable(),) if state.journal_problems else ()


def _fail_expansions(pending: PendingDecision, problems: tuple[Problem, ...]) -> PendingDecision:
    expanding = [app for app in pending.state.applications.values() if app.phase is Phase.EXPANDING]
    return pending.with_changes(
        *(expansions.schedule_retry(app, problems, pending.context) for app in expanding)
    )


def _apply_term(pending: PendingDecision, term: int | None) -> PendingDecision:
    """Forget expansions on a change of the term: the new leader reads them from the journal."""
    state = pending.state
    if term == state.term:
        return pending
    events: list[AgentEvent] = [LeadershipLost(state.term)] if state.term is not None else []
    follower = attrs.evolve(
        state,
        term=term,
        is_recovered=False,
        is_read_requested=True,
        outbox=(),
        journal_problems=(),
        journal_retry=Retry(),
        applications={
            id_: attrs.evolve(app, expansion=None, given_up={}) for id_, app in state.applications.items()
        },
    )
    return pending.with_state(follower, *events)


def _apply_recovered(pending: PendingDecision, entries: Mapping[str, ExpansionEntry]) -> PendingDecision:
    state = pending.state
    if state.term is None:
        return pending
    changes = [
        expansions.resume_expansion(
            state.applications.get(id_, ApplicationState(id=id_)), entry, pending.context
        )
        for id_, entry in entries.items()
    ]
    recovered = attrs.evolve(state, is_recovered=True, journal_problems=(), journal_retry=Retry())
    events = (*_journal_events(state), LeadershipGained(state.term))
    return pending.with_state(recovered, *events).with_changes(*changes)


def _apply_attempt(pending: PendingDecision, attempt: Attempted) -> PendingDecision:
    state = pending.state
    observed = _counts_after_attempt(state.observed_counts, attempt.results)
    pending = pending.with_state(attrs.evolve(state, observed_counts=observed))
    changes = []
    for app in state.applications.values():
        topics = {item.topic for item in app.shortfalls}
        results = tuple(result for result in attempt.results if result.topic in topics)
        if app.expansion is not None and app.phase is Phase.EXPANDING and results:
            changes.append(expansions.apply_results(app, app.expansion, results, pending.context))
    return pending.with_changes(*changes)


def _postpone_application(pending: PendingDecision, application: str) -> PendingDecision:
    app = pending.state.applications.get(application)
    if app is None or app.expansion is None:
        return pending
    return pending.with_changes(Change(expansions.postpone_follow_up(app, app.expansion, pending.context)))


def _apply_called(pending: PendingDecision, application: str, error: str) -> PendingDecision:
    app = pending.state.applications.get(application)
    if app is None or app.expansion is None:
        return pending
    called = attrs.evolve(app, called_number=app.expansion.number, called_error=error)
    return pending.with_changes(Change(called))


def _next_retry(retry: Retry, context: Context) -> Retry:
    attempts = retry.attempts + 1
    return Retry(attempts, context.clock_ms + context.policy.backoff(attempts, context.jitter))
