"""Applications and topics whose owner is another stack, another application, or not proven."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OWNERSHIP_TOPIC, SetupRecord
from headwater.planner.evidence.deletion import Claim, Obstacle, deletion_obstacles, is_internal
from headwater.planner.evidence.topics import TopicEvidence
from headwater.planner.ownership import Ownership
from headwater.planner.plans import ApplicationPlan, TopicAction
from headwater.planner.rules import ownership_messages as messages
from headwater.planner.run import ActiveApplication, Run, TopicState
from headwater.planner.settings import removing_changes


def managed_elsewhere(run: Run) -> Iterator[Problem]:
    """Yield a problem for each ownership record of another stack that the run would ignore.

    An active or retired application may take over what another stack records (`setup.takeOver`). A released
    one changes nothing.
    """
    ownership = run.ownership
    if ownership is None:
        return
    for application in run.active:
        names = [state.name for state in application.topics]
        yield from _conflict_problems(run, ownership, application.id, names)
    for record in run.retired:
        names = [topic.name for topic in record.topics.values() if not topic.is_sink]
        yield from _conflict_problems(run, ownership, record.application_id, names)


def _conflict_problems(run: Run, ownership: Ownership, id_: str, topics: list[str]) -> Iterator[Problem]:
    setups = {c.application.id: c.application.setup for c in run.compiled}
    takes_over = id_ in setups and setups[id_].take_over
    switch = setups[id_].in_stack.get("takeOver") if takes_over else None
    conflicts = tuple(ownership.find_conflicts(id_, topics))
    for conflict in conflicts:
        if takes_over:
            yield messages.taken_over(conflict, switch)
        else:
            yield messages.conflict_problem(conflict, ownership, is_recorded=id_ in run.records)
    if takes_over and not conflicts and id_ in run.records:
        yield messages.unnecessary_transfer(id_, switch)


def ownership_records(run: Run) -> Iterator[Problem]:
    """Yield a problem for each record that is not readable, for missing own records, and for settings.

    A record that cannot be used may be the record of another stack. It refuses the run if its key names an
    application of the run.
    """
    if run.ownership is None:
        return
    topic = run.snapshot.ownership_topic
    for record in topic.unread:
        yield messages.unread_record(run, record)
    if topic.more_unread:
        yield messages.more_records(topic)
    yield from _missing_records(run)
    if changes := run.ownership_settings:
        yield messages.not_safe(topic, changes)


def _missing_records(run: Run) -> Iterator[Problem]:
    """Yield a problem for each application that this stack has set up and that no record names."""
    if run.ownership is None or not run.ownership.stack.has_records:
        return
    unread = {record.key[1] for record in run.snapshot.ownership_topic.unread if record.key is not None}
    foreign = {record.application_id for record in run.ownership.foreign}
    for application in run.active:
        is_explained = application.id in run.ownership.own or application.id in unread | foreign
        if is_explained or application.record is None or application.record.unfinished:
            continue
        yield Problem(
            code=ProblemCode.RECORDS_NOT_SAFE,
            summary=f"The ownership record of {application.id} is missing.",
            application=application.id,
            topic=OWNERSHIP_TOPIC,
            expected="the record that an earlier run of this stack has written",
            found="none",
            why="Another user may have deleted it, or the topic. Without it, another stack can claim the "
            "application.",
            fix=f"The next {messages.UP} writes it again. If you have not deleted the topic yourself, find "
            f"out who writes to {OWNERSHIP_TOPIC}, and remove the permission.",
            severity=Severity.WARNING,
        )


def twice_managed(parts: Iterable[ApplicationPlan]) -> Iterator[Problem]:
    """Yield a problem for each topic with several actions: Pulumi registers a topic once.

    Topics that an application only keeps, releases or deletes count, because they are registered, too, or are
    removed from the cluster.
    """
    managers: defaultdict[str, list[messages.Managed]] = defaultdict(list)
    for part in parts:
        for action in part.actions:
            managers[action.name].append((part.application_id, action))
    for topic, managed in sorted(managers.items()):
        if len(managed) > 1:
            yield messages.managed_twice(topic, managed)


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
                yield from _removing_change_problems(application, state, actions[state.name])


def _adoption_problems(
    run: Run, application: ActiveApplication, state: TopicState, live: LiveTopic, action: TopicAction
) -> Iterator[Problem]:
    evidence = run.evidence.about_topic(application.id, live)
    removing = removing_changes(live, action, run.snapshot.topic_defaults)
    if application.caller.is_running:
        # The application has its id, and its own topics are as old as it: only foreign ones are endangered.
        if removing and state.is_internal and not evidence.is_created_by_streams:
            yield messages.unproven_owner(application, state, live, evidence)
    elif state.is_internal and not _is_adoptable(evidence):
        yield messages.unproven_owner(application, state, live, evidence)
    else:
        yield from _removing_change_problems(application, state, action)


def _is_adoptable(evidence: TopicEvidence) -> bool:
    """Whether the topic may be adopted. Other clients may read it: adoption takes nothing from them.

    What may not be read does not matter either, because adoption neither deletes nor removes anything.
    """
    if evidence.recorded_by:
        return True  # another rule reports it, and accepts `setup.takeOver`
    has_origin = evidence.is_created_by_streams or evidence.is_read_by_own_group
    return evidence.is_proven or (has_origin and not evidence.rivals)


def _removing_change_problems(
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
            if is_internal(run.evidence.about_topic(record.application_id, live)):
                yield from _refused_deletions(
                    run, messages.DeletionStep(record.application_id, *_RETIRING), live
                )
            else:
                yield messages.kept_topic(run, record, live)
    for record in run.deleted:
        for live in _internal_topics(record, run):
            if live.topic_id == record.topics[live.name].topic_id:  # otherwise another rule reports it
                yield from _refused_deletions(
                    run, messages.DeletionStep(record.application_id, _DELETING, is_prepared=True), live
                )
    for application in run.active:
        yield from _left_over(run, application)


def find_obstacles(
    run: Run, application_id: str, live: LiveTopic, *, is_prepared: bool
) -> tuple[Obstacle, ...]:
    """Return the reasons not to delete a topic, or not to prepare it."""
    record = run.records.get(application_id)
    claim = Claim(
        ownership=run.ownership,
        policy=run.snapshot.evidence.ownership_policy if run.snapshot.evidence else "",
        is_prepared=is_prepared,
        is_recorded=record is not None and live.name in record.topics,
    )
    return tuple(deletion_obstacles(run.evidence.about_topic(application_id, live), live, claim))


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
        step = messages.DeletionStep(application.id, *_LEFT_OVER, name in leftovers.delete, leftovers.at)
        if name in declared or (known is not None and known.is_sink):
            what = "the topology declares it" if name in declared else "it is a managed sink"
            yield messages.refused_deletion(step, name, what, _NOT_LEFT_OVER)
        elif live is None:
            yield messages.gone_topic(step, name)
        elif step.is_prepared and not (known is not None and known.is_retired):
            yield messages.refused_deletion(step, name, "no run has retired it", _NOT_RETIRED)
        elif step.is_prepared and known is not None and known.topic_id != live.topic_id:
            yield messages.refused_deletion(step, name, _other_id(known.topic_id, live), _NOT_RETIRED)
        else:
            yield from _refused_deletions(run, step, live)
            if run.evidence.is_running(application.id):
                yield messages.running_application(step, name)


def _refused_deletions(run: Run, step: messages.DeletionStep, live: LiveTopic) -> Iterator[Problem]:
    found = find_obstacles(run, step.application_id, live, is_prepared=step.is_prepared)
    if found:
        yield messages.obstructed_deletion(step, live.name, found)


def _other_id(recorded: str, live: LiveTopic) -> str:
    return f"topic id {live.topic_id}; the topic that was retired has {recorded or 'an unknown id'}"


_RETIRING = (
    "To keep the topics, set `lifecycle: released`.",
    (
        "Stop the other readers and delete their groups or offsets, or remove the topic from the documents "
        "that read it. Then run again."
    ),
)
"""How to keep the topics, and what to do first otherwise."""
_DELETING = (
    "Restore the document with `lifecycle: released` to keep the topics, or with `lifecycle: retired` to "
    "repeat the first step. Then run `pulumi up`."
)
_LEFT_OVER = (
    "To keep the topic, or if another client owns it, move it to `leftovers.keep`.",
    "Stop other readers and delete their groups or offsets, then run again.",
)
_NOT_LEFT_OVER = "Remove it from `leftovers`."
_NOT_RETIRED = (
    "Move it to `leftovers.retire` and run `pulumi up`, which records its id. Then move it to "
    "`leftovers.delete`."
)
