"""Problems of applications and topics whose owner is another stack, another application, or not proven."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.model.cluster import LiveTopic, UnreadCause
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.model.records import ONLY_ACLS, OWNERSHIP_TOPIC, OwnershipTopic, SetupRecord
from headwater.model.topology import StackSwitch
from headwater.model.untrusted import UnreadReason, UnreadRecord
from headwater.planner.evidence.deletion import Obstacle
from headwater.planner.evidence.topics import TopicEvidence
from headwater.planner.ownership import Conflict, Ownership
from headwater.planner.phrases import counted, listed
from headwater.planner.plans import ActionKind, TopicAction
from headwater.planner.run import ActiveApplication, Run, TopicState

_TAKE_OVER = "set `setup.takeOver: true` for one `pulumi up`."
_SAME_NAME = "Otherwise another backend has a stack with this name: release the application there first."
_KEEP = f"To take it back, {_TAKE_OVER}"
UP = "`pulumi up`"
_LATER = "Use the version of Headwater that has written the record, or a later one."
_WRITTEN_AGAIN = (
    f"The next {UP} writes the record of this stack again. Find out who else writes to {OWNERSHIP_TOPIC}, "
    "and remove the permission."
)
_DELETE = (
    f"Find out who writes to {OWNERSHIP_TOPIC}, and remove the permission. Then delete the topic: the next "
    f"{UP} of each stack creates it and writes its records again."
)
_SKIPPED = (
    "The record is skipped, and all others are used. It may hide the record of a stack, so no topic is "
    "deleted until it is gone."
)
_LOST = "This run would replace the record, and lose what the later version has written."
_REFUSED = "It may say that another stack manages {}, so nothing is changed."
Managed = tuple[str, TopicAction]


def conflict_problem(conflict: Conflict, ownership: Ownership, *, is_recorded: bool = False) -> Problem:
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


def taken_over(conflict: Conflict, switch: StackSwitch | None) -> Problem:
    """Return the warning; `switch` is the option of the stack, if it is not in the document."""
    removal = _removal_of(switch)
    return Problem(
        code=ProblemCode.MANAGED_BY_ANOTHER_STACK,
        summary=f"{_subject_of(conflict)} taken over from another stack.",
        application=conflict.application_id,
        topic=_topic_of(conflict),
        expected="one stack for each application and topic",
        found=_owner_of(conflict),
        why="`setup.takeOver` is set. The other stack is refused from now on.",
        fix="In the other stack, if it still exists, set `lifecycle: released` or remove the topic from the "
        f"document. Then {removal[0].lower()}{removal[1:]}",
        severity=Severity.WARNING,
    )


def unnecessary_transfer(id_: str, switch: StackSwitch | None) -> Problem:
    """Return the warning; `switch` is the option of the stack, if it is not in the document."""
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"{id_} has `setup.takeOver: true`, but no other stack manages it.",
        application=id_,
        expected="`setup.takeOver` only for the `pulumi up` that needs it",
        found=f"no other stack, and `{switch.label}: true`" if switch else "no other stack",
        why="If another stack takes over the application, this stack would take it back without an error.",
        fix=_removal_of(switch),
        location=switch.at if switch else None,
        severity=Severity.WARNING,
    )


def _removal_of(switch: StackSwitch | None) -> str:
    return switch.removal if switch else "Remove `setup.takeOver` from the document."


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


def unread_record(run: Run, record: UnreadRecord) -> Problem:
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
        fix = f"{_DELETE} If no other stack manages {application}, set `setup.takeOver: true` for one {UP}."
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


def more_records(topic: OwnershipTopic) -> Problem:
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


def not_safe(topic: OwnershipTopic, changes: Mapping[str, str]) -> Problem:
    found = ", ".join(f"{key}={topic.settings.get(key, 'none')}" for key in changes)
    return Problem(
        code=ProblemCode.RECORDS_NOT_SAFE,
        summary=f"The settings of {OWNERSHIP_TOPIC} do not protect the ownership records.",
        topic=OWNERSHIP_TOPIC,
        expected=", ".join(f"{key}={value}" for key, value in changes.items()),
        found=found,
        why="Brokers may delete records of stacks, or store records that are too large to be read.",
        fix=f"The next {UP} changes the settings. Its user needs permission AlterConfigs on the topic. "
        f"If the brokers refuse them, {ONLY_ACLS}.",
        severity=Severity.WARNING,
    )


def managed_twice(topic: str, managed: Sequence[Managed]) -> Problem:
    applications = {application for application, _ in managed}
    ending = [(application, action) for application, action in managed if action.topic is None]
    if len(applications) == 1:
        (application,) = applications
        return _conflicting_partitions(
            topic,
            f"Topic {topic} is an internal topic and a managed sink of {application}.",
            found="internal topic and managed sink",
            why="The topic cannot have the settings of both.",
            fix="Remove the topic from the section `topics` of the document.",
        )
    if not ending:
        return _conflicting_partitions(
            topic,
            f"Topic {topic} is managed by more than one application.",
            found=listed(applications),
            why="Each application would set its own partition count and settings, and undo what the other "
            "has set.",
            fix="Declare the topic in the document of one of them. The others may still write to it.",
        )
    former, action = ending[0]
    *_, (last, _) = managed
    owner = next((id_ for id_, other in managed if other.topic is not None), last)
    return _conflicting_partitions(
        topic,
        f"Topic {topic} of {owner} still belongs to {former}.",
        found=listed(f"{id_} ({_role_of(other)})" for id_, other in managed),
        why=f"The topic holds data of {former}, and {owner} would continue with it. Only managed sinks move "
        "to another application.",
        fix=_fix_of(topic, former, owner, action.kind),
    )


def _conflicting_partitions(topic: str, summary: str, *, found: str, why: str, fix: str) -> Problem:
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


def unproven_owner(
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


@attrs.frozen
class DeletionStep:
    """A step that deletes topics of an application, or prepares it.

    `keep` says how to keep a topic, `clear` what to do about other users of it first. `is_prepared`: an
    earlier run has prepared the deletion.
    """

    application_id: str
    keep: str
    clear: str = ""
    is_prepared: bool = False
    at: Location | None = None


def obstructed_deletion(step: DeletionStep, topic: str, obstacles: Sequence[Obstacle]) -> Problem:
    """Return the problem that the evidence does not allow a deletion, for these reasons."""
    causes = frozenset[UnreadCause]().union(*(each.unread for each in obstacles))
    has_facts = not all(each.unread and each.unread <= _HOW_TO_READ.keys() for each in obstacles)
    parts = (
        *(text for cause, text in _HOW_TO_READ.items() if cause in causes),
        step.clear if has_facts else "",
        step.keep,
    )
    found = "; ".join(each.text for each in obstacles)
    return refused_deletion(step, topic, found, " ".join(filter(None, parts)))


_HOW_TO_READ = {
    UnreadCause.NO_PERMISSION: "Grant the user the permissions that are missing, and run again: "
    "`headwater acls FILES --self --for retire --principal User:NAME` prints all that a deletion needs.",
    UnreadCause.NO_COORDINATOR: "Start the brokers that are stopped, and run again.",
}
"""Why evidence was not read → how it can be read."""


def refused_deletion(step: DeletionStep, topic: str, found: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"Topic {topic} is not deleted for {step.application_id}: the evidence does not allow it.",
        application=step.application_id,
        topic=topic,
        expected=f"an internal topic of {step.application_id} that no other client reads",
        found=found,
        why="A deleted topic cannot be restored, and whoever uses it loses its records.",
        fix=fix,
        location=step.at,
    )


def kept_topic(run: Run, record: SetupRecord, live: LiveTopic) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"Topic {live.name} is not deleted with {record.application_id}: it stays.",
        application=record.application_id,
        topic=live.name,
        expected="a topic that Kafka Streams or Headwater created",
        found=run.evidence.about_topic(record.application_id, live).text,
        why="It may be a topic of another application or user.",
        fix="If it is not needed, delete it yourself after you found out who created it.",
        severity=Severity.WARNING,
    )


def gone_topic(step: DeletionStep, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"Topic {topic} of `leftovers` does not exist.",
        application=step.application_id,
        topic=topic,
        expected="a topic that exists",
        found="none",
        why="Nothing has to be deleted.",
        fix="Remove it from `leftovers`.",
        location=step.at,
        severity=Severity.INFO,
    )


def running_application(step: DeletionStep, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{step.application_id} is running, and its topic {topic} is to be deleted.",
        application=step.application_id,
        topic=topic,
        expected="instances that all run the topology of the document",
        found="a consumer group with members; Kafka does not show which changelog topics they use",
        why="An instance with an earlier topology would fail, or create the topic again.",
        fix="Make sure that all instances run the topology of the document before the topic is deleted.",
        location=step.at,
        severity=Severity.WARNING,
    )
