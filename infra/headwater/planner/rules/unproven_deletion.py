"""A topic is to be deleted, now or in the next step, and the evidence does not allow it."""

from collections.abc import Iterator

import attrs

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.model.records import SetupRecord
from headwater.planner.application import ActiveApplication
from headwater.planner.evidence.deletion import Claim, deletion_obstacles, is_internal
from headwater.planner.run import Run


def unproven_deletion(run: Run) -> Iterator[Problem]:
    """Yield a problem for each topic of retired applications and left-over topic that must not be deleted.

    The first step of retiring an application releases topics that Kafka Streams did not create.
    """
    for record in run.retiring:
        for live in _internal(record, run):
            if is_internal(run.evidence.of(record.application_id, live)):
                yield from _refused(run, _Step(record.application_id, _RETIRING), live)
            else:
                yield _kept(run, record, live)
    for record in run.deleted:
        for live in _internal(record, run):
            if live.topic_id == record.topics[live.name].topic_id:  # otherwise another rule reports it
                yield from _refused(run, _Step(record.application_id, _DELETING, is_prepared=True), live)
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


@attrs.frozen
class _Step:
    application_id: str
    fix: str
    is_prepared: bool = False
    at: Location | None = None


def _internal(record: SetupRecord, run: Run) -> Iterator[LiveTopic]:
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
        step = _Step(application.id, _LEFT_OVER, name in leftovers.delete, leftovers.at)
        if name in declared or (known is not None and known.is_sink):
            what = "the topology declares it" if name in declared else "it is a managed sink"
            yield _refusal(step, name, what, _NOT_LEFT_OVER)
        elif live is None:
            yield _gone(step, name)
        elif step.is_prepared and not (known is not None and known.is_retired):
            yield _refusal(step, name, "no run has retired it", _NOT_RETIRED)
        elif step.is_prepared and known is not None and known.topic_id != live.topic_id:
            yield _refusal(step, name, _other_id(known.topic_id, live), _NOT_RETIRED)
        else:
            yield from _refused(run, step, live)
            if run.evidence.is_running(application.id):
                yield _running(step, name)


def _refused(run: Run, step: _Step, live: LiveTopic) -> Iterator[Problem]:
    found = obstacles(run, step.application_id, live, is_prepared=step.is_prepared)
    if found:
        yield _refusal(step, live.name, "; ".join(found))


def _refusal(step: _Step, topic: str, found: str, fix: str = "") -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"Topic {topic} is not deleted for {step.application_id}: the evidence does not allow it.",
        application=step.application_id,
        topic=topic,
        expected=f"an internal topic of {step.application_id} that no other client reads",
        found=found,
        why="A deleted topic cannot be restored, and whoever uses it loses its records.",
        fix=fix or step.fix,
        location=step.at,
    )


def _kept(run: Run, record: SetupRecord, live: LiveTopic) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"Topic {live.name} is not deleted with {record.application_id}: it stays.",
        application=record.application_id,
        topic=live.name,
        expected="a topic that Kafka Streams or Headwater created",
        found=run.evidence.of(record.application_id, live).text,
        why="It may be a topic of another application or user.",
        fix="If it is not needed, delete it yourself after you found out who created it.",
        severity=Severity.WARNING,
    )


def _gone(step: _Step, topic: str) -> Problem:
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


def _running(step: _Step, topic: str) -> Problem:
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
