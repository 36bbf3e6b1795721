"""The topic of the ownership records: what in it cannot be used, what is missing, and its settings."""

from collections.abc import Iterator, Mapping

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipTopic
from headwater.model.untrusted import UnreadReason, UnreadRecord
from headwater.planner.phrases import counted
from headwater.planner.run import Run


def ownership_records(run: Run) -> Iterator[Problem]:
    """Yield a problem for each record that is not readable, each own one that is missing, and for settings.

    A record that cannot be used may be the record of another stack. It refuses the run if its key names an
    application of the run.
    """
    if run.ownership is None:
        return
    topic = run.snapshot.ownership_topic
    for record in topic.unread:
        yield _unread(run, record)
    if topic.more_unread:
        yield _more(topic)
    yield from _missing(run)
    if changes := topic.changes:
        yield _not_safe(topic, changes)


def _unread(run: Run, record: UnreadRecord) -> Problem:
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
        found=f"offset {record.offset}: {_whose(record, is_own=is_own)}",
        why=(_LOST if is_own else _REFUSED.format(application)) if is_refused else _SKIPPED,
        fix=fix,
        severity=Severity.ERROR if is_refused else Severity.WARNING,
    )


def _whose(record: UnreadRecord, *, is_own: bool) -> str:
    if record.key is None:
        is_fetched = record.reason not in (UnreadReason.TOO_LARGE, UnreadReason.COMPRESSED)
        return "its key names no stack" if is_fetched else "its key is not known"
    return f"its key names {'this stack' if is_own else 'another stack'} and application {record.key[1]}"


def _more(topic: OwnershipTopic) -> Problem:
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


def _missing(run: Run) -> Iterator[Problem]:
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
