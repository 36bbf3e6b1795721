"""Applications and topics that another stack or another application manages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.planner.ownership import Ownership
from headwater.planner.plans import ApplicationPlan
from headwater.planner.rules.ownership_messages import (
    UP,
    Managed,
    managed_twice,
    more_records,
    not_safe,
    refusal,
    taken_over,
    unnecessary_transfer,
    unread_record,
)
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
            yield taken_over(conflict)
        else:
            yield refusal(conflict, ownership, is_recorded=id_ in run.records)
    if takes_over and not conflicts and id_ in run.records:
        yield unnecessary_transfer(id_)


def ownership_records(run: Run) -> Iterator[Problem]:
    """Yield a problem for each record that is not readable, for missing own records, and for settings.

    A record that cannot be used may be the record of another stack. It refuses the run if its key names an
    application of the run.
    """
    if run.ownership is None:
        return
    topic = run.snapshot.ownership_topic
    for record in topic.unread:
        yield unread_record(run, record)
    if topic.more_unread:
        yield more_records(topic)
    yield from _missing_records(run)
    if changes := topic.changes:
        yield not_safe(topic, changes)


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
            fix=f"The next {UP} writes it again. If you have not deleted the topic yourself, find out who "
            f"writes to {OWNERSHIP_TOPIC}, and remove the permission.",
            severity=Severity.WARNING,
        )


def twice_managed(parts: Iterable[ApplicationPlan]) -> Iterator[Problem]:
    """Yield a problem for each topic with several actions: Pulumi registers a topic once.

    Topics that an application only keeps, releases or deletes count, because they are registered, too, or are
    removed from the cluster.
    """
    managers: defaultdict[str, list[Managed]] = defaultdict(list)
    for part in parts:
        for action in part.actions:
            managers[action.name].append((part.application_id, action))
    for topic, managed in sorted(managers.items()):
        if len(managed) > 1:
            yield managed_twice(topic, managed)
