"""Applications and topics that another stack or another application manages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipTopic
from headwater.model.untrusted import UnreadReason, UnreadRecord
from headwater.planner.actions import ActionKind, TopicAction
from headwater.planner.ownership import Conflict, Ownership
from headwater.planner.phrases import counted, listed
from headwater.planner.plans import ApplicationPlan
from headwater.planner.run import Run


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
    conflicts = tuple(ownership.conflicts(id_, topics))
    for conflict in conflicts:
        if takes_over:
            yield _taken_over(conflict)
        else:
            yield refusal(conflict, ownership, is_recorded=id_ in run.records)
    if takes_over and not conflicts and id_ in run.records:
        yield _unnecessary_transfer(id_)


def refusal(conflict: Conflict, ownership: Ownership, *, is_recorded: bool = False) -> Problem:
    """Return the problem; `is_recorded`: this stack has set up the application, too."""
    stack = conflict.record.stack
    has_same_name = stack.has_same_name(ownership.stack)
    if has_same_name:
        fix = f"If the state of this stack was lost, or restored from elsewhere, {_TAKE_OVER} {_SAME_NAME}"
    elif stack.id == ownership.stack.id and conflict.is_same_application:
        fix = (
            f"If stack {stack.name} was renamed to this one, {_TAKE_OVER} If this state is a copy of its "
            "state, set `lifecycle: released` here: the topics stay."
        )
    elif not conflict.is_same_application:
        fix = (
            "Declare it in one document only; the other application may still write to it. To move it here, "
            f"remove it from application {conflict.record.application_id}, and {_TAKE_OVER}"
        )
    elif is_recorded:
        fix = f"If it moved to stack {stack.name}, set `lifecycle: released` here: its topics stay. {_KEEP}"
    else:
        fix = (
            f"Declare it in one stack only. To move it here, run `pulumi up` with `lifecycle: released` in "
            f"stack {stack.name} first. If that stack or its state no longer exists, {_TAKE_OVER}"
        )
    return Problem(
        code=ProblemCode.MANAGED_BY_ANOTHER_STACK,
        summary=f"{_subject_of(conflict)} managed by another stack.",
        application=conflict.application_id,
        topic=_topic_of(conflict),
        expected="one stack for each application and topic",
        found=f"{_owner_of(conflict)}{', the same name with another state' if has_same_name else ''}",
        why="Both stacks would change the topics. Retiring the application in one of them would delete the "
        "topics of the other.",
        fix=fix,
    )


def _taken_over(conflict: Conflict) -> Problem:
    return Problem(
        code=ProblemCode.MANAGED_BY_ANOTHER_STACK,
        summary=f"{_subject_of(conflict)} taken over from another stack.",
        application=conflict.application_id,
        topic=_topic_of(conflict),
        expected="one stack for each application and topic",
        found=_owner_of(conflict),
        why="`setup.takeOver` is set. The other stack is refused from now on.",
        fix="In the other stack, if it still exists, set `lifecycle: released` or remove the topic from the "
        "document. Then remove `setup.takeOver`.",
        severity=Severity.WARNING,
    )


def _unnecessary_transfer(id_: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"{id_} has `setup.takeOver: true`, but no other stack manages it.",
        application=id_,
        expected="`setup.takeOver` only for the `pulumi up` that needs it",
        found="no other stack",
        why="If another stack takes over the application, this stack would take it back without an error.",
        fix="Remove `setup.takeOver`.",
        severity=Severity.WARNING,
    )


def _subject_of(conflict: Conflict) -> str:
    if conflict.is_same_application:
        return f"Application {conflict.application_id} is"
    if len(conflict.topics) == 1:
        return f"Topic {conflict.topics[0]} of application {conflict.application_id} is"
    return f"{counted(len(conflict.topics), 'topic')} of application {conflict.application_id} are"


def _owner_of(conflict: Conflict) -> str:
    record = conflict.record
    if conflict.is_same_application:
        return f"stack {record.stack.name}, {counted(len(record.topics), 'topic')}"
    return f"stack {record.stack.name}, application {record.application_id}: {listed(conflict.topics)}"


def _topic_of(conflict: Conflict) -> str | None:
    is_one = not conflict.is_same_application and len(conflict.topics) == 1
    return conflict.topics[0] if is_one else None


_TAKE_OVER = "set `setup.takeOver: true` for one `pulumi up`."
_SAME_NAME = "Otherwise another backend has a stack with this name: release the application there first."
_KEEP = f"To take it back, {_TAKE_OVER}"


def ownership_records(run: Run) -> Iterator[Problem]:
    """Yield a problem for each record that is not readable, each own one that is missing, and for settings.

    A record that cannot be used may be the record of another stack. It refuses the run if its key names an
    application of the run.
    """
    if run.ownership is None:
        return
    topic = run.snapshot.ownership_topic
    for record in topic.unread:
        yield _unread_record(run, record)
    if topic.more_unread:
        yield _more_records(topic)
    yield from _missing_records(run)
    if changes := topic.changes:
        yield _not_safe(topic, changes)


def _unread_record(run: Run, record: UnreadRecord) -> Problem:
    stack_id, application = record.key or ("", "")
    is_own = bool(stack_id) and run.ownership is not None and stack_id == run.ownership.stack.id
    is_of_run = application in {compiled.application.id for compiled in run.compiled} | run.records.keys()
    is_later = record.reason is UnreadReason.LATER_FORMAT
    takes_over = any(
        each.application.id == application and each.application.setup.take_over for each in run.compiled
    )
    if is_later:
        fix = _LATER
    elif is_own and is_of_run:
        fix = _WRITTEN_AGAIN
    elif is_of_run:
        fix = f"{_DELETE} If no other stack manages {application}, set `setup.takeOver: true` for one {_UP}."
    else:
        fix = _DELETE
    is_refused = is_of_run and (is_later if is_own else not takes_over)
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        summary=f"A record in {record.location} is {record.reason.value}.",
        application=application if is_of_run else None,
        topic=OWNERSHIP_TOPIC,
        expected="only records that Headwater has written",
        found=f"offset {record.offset}: {_whose_record(record, is_own=is_own)}",
        why=(_LOST if is_own else _REFUSED.format(application)) if is_refused else _SKIPPED,
        fix=fix,
        severity=Severity.ERROR if is_refused else Severity.WARNING,
    )


def _whose_record(record: UnreadRecord, *, is_own: bool) -> str:
    if record.key is None:
        is_fetched = record.reason not in (UnreadReason.TOO_LARGE, UnreadReason.COMPRESSED)
        return "its key names no stack" if is_fetched else "its key is not known"
    return f"its key names {'this stack' if is_own else 'another stack'} and application {record.key[1]}"


def _more_records(topic: OwnershipTopic) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        summary=f"{counted(topic.more_unread, 'more record')} in {OWNERSHIP_TOPIC} cannot be used.",
        topic=OWNERSHIP_TOPIC,
        expected="only records that Headwater has written",
        found=counted(topic.more_unread, "more record"),
        why="They are skipped. They may hide records of stacks, so no topic is deleted until they are gone.",
        fix=_DELETE,
        severity=Severity.WARNING,
    )


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
            fix=f"The next {_UP} writes it again. If you have not deleted the topic yourself, find out who "
            f"writes to {OWNERSHIP_TOPIC}, and remove the permission.",
            severity=Severity.WARNING,
        )


def _not_safe(topic: OwnershipTopic, changes: Mapping[str, str]) -> Problem:
    found = ", ".join(f"{key}={topic.settings.get(key, 'none')}" for key in changes)
    return Problem(
        code=ProblemCode.RECORDS_NOT_SAFE,
        summary=f"The settings of {OWNERSHIP_TOPIC} do not protect the ownership records.",
        topic=OWNERSHIP_TOPIC,
        expected=", ".join(f"{key}={value}" for key, value in changes.items()),
        found=found,
        why="Brokers may delete records of stacks, or store records that are too large to be read.",
        fix=f"The next {_UP} changes the settings. Its user needs permission AlterConfigs on the topic.",
        severity=Severity.WARNING,
    )


_UP = "`pulumi up`"
_LATER = "Use the version of Headwater that has written the record, or a later one."
_WRITTEN_AGAIN = (
    f"The next {_UP} writes the record of this stack again. Find out who else writes to {OWNERSHIP_TOPIC}, "
    "and remove the permission."
)
_DELETE = (
    f"Find out who writes to {OWNERSHIP_TOPIC}, and remove the permission. Then delete the topic: the next "
    f"{_UP} of each stack creates it and writes its records again."
)
_SKIPPED = (
    "The record is skipped, and all others are used. It may hide the record of a stack, so no topic is "
    "deleted until it is gone."
)
_LOST = "This run would replace the record, and lose what the later version has written."
_REFUSED = "It may say that another stack manages {}, so nothing is changed."


_Managed = tuple[str, TopicAction]


def twice_managed(parts: Iterable[ApplicationPlan]) -> Iterator[Problem]:
    """Yield a problem for each topic with several actions: Pulumi registers a topic once.

    Topics that an application only keeps, releases or deletes count, because they are registered, too, or are
    removed from the cluster.
    """
    managers: defaultdict[str, list[_Managed]] = defaultdict(list)
    for part in parts:
        for action in part.actions:
            managers[action.name].append((part.application_id, action))
    for topic, managed in sorted(managers.items()):
        if len(managed) > 1:
            yield _managed_twice(topic, managed)


def _managed_twice(topic: str, managed: Sequence[_Managed]) -> Problem:
    applications = {application for application, _ in managed}
    ending = [(application, action) for application, action in managed if action.topic is None]
    if len(applications) == 1:
        (application,) = applications
        return _conflict_problem(
            topic,
            f"Topic {topic} is an internal topic and a managed sink of {application}.",
            found="internal topic and managed sink",
            why="The topic cannot have the settings of both.",
            fix="Remove the topic from the section `topics` of the document.",
        )
    if not ending:
        return _conflict_problem(
            topic,
            f"Topic {topic} is managed by more than one application.",
            found=listed(applications),
            why="Each application would set its own partition count and settings, and undo those of the "
            "other.",
            fix="Declare the topic in the document of one of them. The others may still write to it.",
        )
    former, action = ending[0]
    *_, (last, _) = managed
    owner = next((id_ for id_, other in managed if other.topic is not None), last)
    return _conflict_problem(
        topic,
        f"Topic {topic} of {owner} still belongs to {former}.",
        found=listed(f"{id_} ({_role_of(other)})" for id_, other in managed),
        why=f"The topic holds data of {former}, and {owner} would continue with it. Only managed sinks move "
        "to another application.",
        fix=_fix_of(topic, former, owner, action.kind),
    )


def _conflict_problem(topic: str, summary: str, *, found: str, why: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=summary,
        topic=topic,
        expected="one application that manages it",
        found=found,
        why=why,
        fix=fix,
    )


def _role_of(action: TopicAction) -> str:
    if action.topic is not None:
        return "declares it"
    return {
        ActionKind.RELEASE: "releases it",
        ActionKind.RETIRE: "will delete it",
        ActionKind.DELETE: "deletes it",
    }.get(action.kind, "keeps it")


def _fix_of(topic: str, former: str, owner: str, kind: ActionKind) -> str:
    other = f"Or give the topic another name in {owner}."
    if kind is ActionKind.KEEP:
        return (
            f"If {former} no longer needs it, delete {topic} with `leftovers` of the document of {former}, "
            f"without the document of {owner}. {other}"
        )
    if kind is ActionKind.RELEASE:
        return f"Run `pulumi up` without the document of {owner} first: {former} then releases it. {other}"
    return f"Complete the retirement of {former} without the document of {owner} first. {other}"
