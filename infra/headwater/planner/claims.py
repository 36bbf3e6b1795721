"""The ownership records that a run writes: before it changes the cluster, and after it has finished."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.model.records import OwnershipChange, OwnershipRecord, SetupRecord
from headwater.planner.evidence.topics import read_topics
from headwater.planner.ownership import Conflict, Ownership
from headwater.planner.plans import ActionKind, ApplicationPlan, Plan


def change_before(plan: Plan, ownership: Ownership) -> OwnershipChange:
    """Return what to write before the run changes the cluster: it claims applications and topics."""
    written: list[OwnershipRecord] = []
    deleted = list(ownership.outdated)
    for part in plan.applications:
        claim = _claim_during(part, ownership)
        if claim is None:
            continue
        if claim != ownership.own.get(part.application_id):
            written.append(claim)
        if part.compiled is not None and part.compiled.application.setup.take_over:
            for conflict in ownership.find_conflicts(part.application_id, _declared_topics(part)):
                if not conflict.is_same_application:
                    written.append(_without_topics(conflict.record, conflict.topics))
                elif conflict.record.key != claim.key:  # the claim itself replaces one of a copied state
                    deleted.append(conflict.record.key)
            deleted += _unread_keys(part.application_id, ownership)
    return OwnershipChange(tuple(written), tuple(deleted))


def change_after(plan: Plan, ownership: Ownership, recorded: Mapping[str, SetupRecord]) -> OwnershipChange:
    """Return what to write when the run has finished.

    `recorded` is application id → setup record with the ids of all topics.
    """
    written, deleted = [], []
    for part in plan.applications:
        before = _claim_during(part, ownership) or ownership.own.get(part.application_id)
        after = _record_after(part, recorded.get(part.application_id), ownership)
        if after is not None and after != before:
            written.append(after)
        if after is None and before is not None:
            deleted.append(before.key)
    # What is left of applications whose topics an earlier run has deleted.
    planned = {part.application_id for part in plan.applications}
    deleted += [record.key for id_, record in ownership.own.items() if id_ not in planned]
    return OwnershipChange(tuple(written), tuple(deleted))


def find_race(before: OwnershipChange, ownership: Ownership, now: Ownership) -> tuple[Conflict, ...]:
    """Return conflicts of the written records with records that another stack has written meanwhile."""
    return tuple(
        conflict
        for record in before.written
        if record.stack == ownership.stack
        for conflict in now.find_conflicts(record.application_id, tuple(record.topics))
        if conflict.record not in ownership.foreign and conflict.record not in before.written
    )


def retract_claims(before: OwnershipChange, ownership: Ownership) -> OwnershipChange:
    """Return the change that restores the own records of before the run."""
    own = [record for record in before.written if record.stack == ownership.stack]
    previous = {record.key: record for record in ownership.own.values()}
    return OwnershipChange(
        written=tuple(previous[record.key] for record in own if record.key in previous),
        deleted=tuple(record.key for record in own if record.key not in previous),
    )


def _unread_keys(application_id: str, ownership: Ownership) -> Iterator[tuple[str, str]]:
    """Yield the keys of unreadable records that may say that another stack manages the application."""
    for record in ownership.unread:
        stack_id, application = record.key or ("", "")
        if application == application_id and stack_id != ownership.stack.id:
            yield stack_id, application


def _claim_during(part: ApplicationPlan, ownership: Ownership) -> OwnershipRecord | None:
    """Return the record during the run: with the topics of before and after. None: nothing to claim."""
    if part.record is None:
        return None
    own = ownership.own.get(part.application_id)
    topics = {**(own.topics if own else {}), **_topics_to_claim(part, part.record, ownership)}
    record = OwnershipRecord(
        application_id=part.application_id,
        stack=ownership.stack,
        topics=topics,
        is_finished=own is not None and own.is_finished and own.stack.id == ownership.stack.id,
        is_retired=own is not None and own.is_retired and part.record.retired,
        reads=_topics_read(part),
        retired_topics=(own.retired_topics if own else frozenset()) & _retired_topics(part.record),
    )
    # The ids of topics are written after the run.
    is_same = own is not None and attrs.evolve(record, topics=own.topics, stack=own.stack) == own
    is_known = own is not None and own.stack.id == ownership.stack.id and topics.keys() == own.topics.keys()
    return own if is_same and is_known else record


def _record_after(
    part: ApplicationPlan, recorded: SetupRecord | None, ownership: Ownership
) -> OwnershipRecord | None:
    if part.record is None:
        deleted = {
            action.name: action.live.topic_id
            for action in part.actions
            if action.kind is ActionKind.DELETE and action.live is not None
        }
        if not deleted:
            return None
        return OwnershipRecord(
            application_id=part.application_id, stack=ownership.stack, topics=deleted, is_retired=True
        )
    record = recorded or part.record
    return OwnershipRecord(
        application_id=part.application_id,
        stack=ownership.stack,
        topics=_topics_to_claim(part, record, ownership),
        is_retired=record.retired,
        reads=_topics_read(part),
        retired_topics=_retired_topics(record),
    )


def _topics_to_claim(part: ApplicationPlan, record: SetupRecord, ownership: Ownership) -> Mapping[str, str]:
    """Return the topics to claim: not those that the topology no longer has and another stack records."""
    declared = set(_declared_topics(part))
    foreign = {name for other in ownership.foreign for name in other.topics} - declared
    return {name: topic.topic_id for name, topic in record.topics.items() if name not in foreign}


def _topics_read(part: ApplicationPlan) -> frozenset[str]:
    """Return the topics of others that the application reads: no other stack may delete them."""
    return frozenset(read_topics(part.compiled)) if part.compiled is not None else frozenset()


def _retired_topics(record: SetupRecord) -> frozenset[str]:
    return frozenset(name for name, topic in record.topics.items() if topic.is_retired)


def _declared_topics(part: ApplicationPlan) -> tuple[str, ...]:
    """Return the topics that the application declares, or that it retires."""
    return tuple(
        action.name
        for action in part.actions
        if action.topic is not None or action.kind in (ActionKind.RETIRE, ActionKind.DELETE)
    )


def _without_topics(record: OwnershipRecord, topics: Sequence[str]) -> OwnershipRecord:
    return attrs.evolve(record, topics={n: id_ for n, id_ in record.topics.items() if n not in topics})
