"""Topics whose owner is not proven, and which a run would adopt or delete."""

from collections.abc import Iterator

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode
from headwater.model.records import SetupRecord
from headwater.planner.actions import TopicAction
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.evidence.deletion import Claim, deletion_obstacles, is_internal
from headwater.planner.evidence.topics import TopicEvidence
from headwater.planner.rules.ownership_messages import (
    Step,
    gone_topic,
    kept_topic,
    refused_deletion,
    running_application,
    unproven_owner,
)
from headwater.planner.run import Run
from headwater.planner.settings import removing_changes


def unproven_adoption(run: Run) -> Iterator[Problem]:
    """Yield a problem for each topic that exists and that neither a record nor its settings attribute to it.

    A document names each managed sink, so a sink needs no evidence. But for it, too, a setting must not
    change in a way that removes records. `headwater drift` without a stack adopts nothing.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        if not (application.caller.knows_setup or application.caller.is_running):
            continue
        for state in application.topics:
            if state.live is None or state.name in application.setup.adopt_topics:
                continue
            if not state.is_ours:
                yield from _adoption_problems(run, application, state, state.live, actions[state.name])
            elif state.is_replaced and state.live.is_empty is False and not application.caller.is_running:
                # Another client created it: it has only the name of the topic that was set up.
                yield from _removing_changes(application, state, actions[state.name])


def _adoption_problems(
    run: Run, application: ActiveApplication, state: TopicState, live: LiveTopic, action: TopicAction
) -> Iterator[Problem]:
    evidence = run.evidence.of(application.id, live)
    removing = removing_changes(live, action, run.snapshot.topic_defaults)
    if application.caller.is_running:
        # The application has its id, and its own topics are as old as it: only foreign ones are endangered.
        if removing and state.is_internal and not evidence.is_created_by_streams:
            yield unproven_owner(application, state, live, evidence)
    elif state.is_internal and not _is_adoptable(evidence):
        yield unproven_owner(application, state, live, evidence)
    else:
        yield from _removing_changes(application, state, action)


def _is_adoptable(evidence: TopicEvidence) -> bool:
    """Whether the topic may be adopted. Other clients may read it: adoption takes nothing from them.

    What may not be read does not matter either, because adoption neither deletes nor removes anything.
    """
    if evidence.recorded_by:
        return True  # another rule reports it, and accepts `setup.takeOver`
    has_origin = evidence.is_created_by_streams or evidence.is_read_by_own_group
    return evidence.is_proven or (has_origin and not evidence.rivals)


def _removing_changes(
    application: ActiveApplication, state: TopicState, action: TopicAction
) -> Iterator[Problem]:
    live = action.live
    changes = removing_changes(live, action, application.snapshot.topic_defaults) if live else ()
    if not changes:
        return
    yield application.problem(
        ProblemCode.SETTING_REMOVES_DATA,
        f"{state.title} was created by another client, and adopting it would change settings so that Kafka "
        "removes records that it keeps now.",
        topic=state,
        expected=", ".join(f"{change.key} {change.declared or 'not set'}" for change in changes),
        found=", ".join(f"{change.key} {change.live or 'not set'}" for change in changes),
        why="Headwater did not create the topic. Records that Kafka removes cannot be restored.",
        fix="Declare the live values in the document. If the records are not needed, add the topic to "
        "`setup.adoptTopics` of the document for one `pulumi up`.",
    )


def unproven_deletion(run: Run) -> Iterator[Problem]:
    """Yield a problem for each topic of retired applications and left-over topic that must not be deleted.

    The first step of retiring an application releases topics that Kafka Streams did not create.
    """
    for record in run.retiring:
        for live in _internal_topics(record, run):
            if is_internal(run.evidence.of(record.application_id, live)):
                yield from _refused_deletions(run, Step(record.application_id, _RETIRING), live)
            else:
                yield kept_topic(run, record, live)
    for record in run.deleted:
        for live in _internal_topics(record, run):
            if live.topic_id == record.topics[live.name].topic_id:  # otherwise another rule reports it
                yield from _refused_deletions(
                    run, Step(record.application_id, _DELETING, is_prepared=True), live
                )
    for application in run.active:
        yield from _left_over(run, application)


def obstacles(run: Run, application_id: str, live: LiveTopic, *, is_prepared: bool) -> tuple[str, ...]:
    """Return phrases for the reasons not to delete a topic, or not to prepare it."""
    record = run.records.get(application_id)
    claim = Claim(
        ownership=run.ownership,
        policy=run.snapshot.evidence.ownership_policy if run.snapshot.evidence else "",
        is_prepared=is_prepared,
        is_recorded=record is not None and live.name in record.topics,
    )
    return tuple(deletion_obstacles(run.evidence.of(application_id, live), live, claim))


def _internal_topics(record: SetupRecord, run: Run) -> Iterator[LiveTopic]:
    """Yield the internal topics of a record that exist."""
    for name, topic in sorted(record.topics.items()):
        live = run.snapshot.topics.get(name)
        if live is not None and not topic.is_sink:
            yield live


def _left_over(run: Run, application: ActiveApplication) -> Iterator[Problem]:
    leftovers = application.compiled.application.leftovers
    recorded = application.record.topics if application.record else {}
    declared = {state.name for state in application.topics}
    for name in sorted({*leftovers.retire, *leftovers.delete} - {*leftovers.keep}):
        live, known = run.snapshot.topics.get(name), recorded.get(name)
        step = Step(application.id, _LEFT_OVER, name in leftovers.delete, leftovers.at)
        if name in declared or (known is not None and known.is_sink):
            what = "the topology declares it" if name in declared else "it is a managed sink"
            yield refused_deletion(step, name, what, _NOT_LEFT_OVER)
        elif live is None:
            yield gone_topic(step, name)
        elif step.is_prepared and not (known is not None and known.is_retired):
            yield refused_deletion(step, name, "no run has retired it", _NOT_RETIRED)
        elif step.is_prepared and known is not None and known.topic_id != live.topic_id:
            yield refused_deletion(step, name, _other_id(known.topic_id, live), _NOT_RETIRED)
        else:
            yield from _refused_deletions(run, step, live)
            if run.evidence.is_running(application.id):
                yield running_application(step, name)


def _refused_deletions(run: Run, step: Step, live: LiveTopic) -> Iterator[Problem]:
    found = obstacles(run, step.application_id, live, is_prepared=step.is_prepared)
    if found:
        yield refused_deletion(step, live.name, "; ".join(found))


def _other_id(recorded: str, live: LiveTopic) -> str:
    return f"topic id {live.topic_id}; the topic that was retired has {recorded or 'an unknown id'}"


_RETIRING = (
    "Stop the other readers and delete their groups or offsets, or remove the topic from the documents that "
    "read it. Then run again. To keep the topics, set `lifecycle: released`."
)
_DELETING = (
    "Restore the document with `lifecycle: released` to keep the topics, or with `lifecycle: retired` to "
    "repeat the first step. Then run `pulumi up`."
)
_LEFT_OVER = (
    "Stop other readers and delete their groups or offsets, then run again. To keep the topic, or if another "
    "client owns it, move it to `leftovers.keep`."
)
_NOT_LEFT_OVER = "Remove it from `leftovers`."
_NOT_RETIRED = (
    "Move it to `leftovers.retire` and run `pulumi up`, which records its id. Then move it to "
    "`leftovers.delete`."
)
