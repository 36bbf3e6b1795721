"""A run would adopt topics that may not belong to the application, or remove records of adopted topics."""

from collections.abc import Iterator

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.actions import TopicAction
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.evidence.topics import TopicEvidence
from headwater.planner.phrases import counted
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
                yield from _problems(run, application, state, state.live, actions[state.name])
            elif state.is_replaced and state.live.is_empty is False and not application.caller.is_running:
                # Another client created it: only its name is that of the topic that was set up.
                yield from _removing(application, state, actions[state.name])


def _problems(
    run: Run, application: ActiveApplication, state: TopicState, live: LiveTopic, action: TopicAction
) -> Iterator[Problem]:
    evidence = run.evidence.of(application.id, live)
    removing = removing_changes(live, action, run.snapshot.topic_defaults)
    if application.caller.is_running:
        # The application has its id, and its own topics are as old as it: only foreign ones are endangered.
        if removing and state.is_internal and not evidence.is_created_by_streams:
            yield _unproven(application, state, live, evidence)
    elif state.is_internal and not _is_adoptable(evidence):
        yield _unproven(application, state, live, evidence)
    else:
        yield from _removing(application, state, action)


def _is_adoptable(evidence: TopicEvidence) -> bool:
    """Whether the topic may be adopted. Other clients may read it: adoption takes nothing from them.

    What may not be read does not matter either, because adoption neither deletes nor removes anything.
    """
    if evidence.recorded_by:
        return True  # another rule reports it, and accepts `setup.takeOver`
    has_origin = evidence.is_created_by_streams or evidence.is_read_by_own_group
    return evidence.is_proven or (has_origin and not evidence.rivals)


def _unproven(
    application: ActiveApplication, state: TopicState, live: LiveTopic, evidence: TopicEvidence
) -> Problem:
    return application.problem(
        ProblemCode.OWNER_NOT_PROVEN,
        f"Topic {live.name} exists, and nothing but its name shows that it belongs to {application.id}.",
        topic=state,
        expected=f"a topic that Kafka Streams created for {application.id}, with its settings",
        found=f"{counted(live.partitions, 'partition')}; {evidence.text}",
        why="It may be a topic of another application or user. Headwater would change its settings and "
        "partitions, and delete it with the application.",
        fix=f"If it belongs to {application.id}, add it to `setup.adoptTopics` of the document for one "
        "`pulumi up`. Otherwise give the store, the operator or the application another name.",
    )


def _removing(application: ActiveApplication, state: TopicState, action: TopicAction) -> Iterator[Problem]:
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
