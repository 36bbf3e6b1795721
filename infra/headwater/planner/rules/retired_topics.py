"""A topic of a retired application was deleted and re-created: another topic has its name."""

from collections.abc import Iterator

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.run import Run


def retired_topics(run: Run) -> Iterator[Problem]:
    """Yield a problem for each internal topic whose id is not the recorded one.

    The first step of retiring records the ids that it finds, so it continues with a warning. The second step
    deletes only topics with these ids.
    """
    for record in run.retiring:
        for recorded, live in _replaced(record, run):
            if recorded.topic_id:
                yield _problem(record, recorded, live, _FIRST_STEP, Severity.WARNING)
    for record in run.deleted:
        for recorded, live in _replaced(record, run):
            yield _problem(record, recorded, live, _SECOND_STEP, Severity.ERROR)


def _replaced(record: SetupRecord, run: Run) -> Iterator[tuple[RecordedTopic, LiveTopic]]:
    for name, recorded in sorted(record.topics.items()):
        live = run.snapshot.topics.get(name)
        if live is not None and not recorded.is_sink and live.topic_id != recorded.topic_id:
            yield recorded, live


def _problem(
    record: SetupRecord, recorded: RecordedTopic, live: LiveTopic, fix: str, severity: Severity
) -> Problem:
    is_first_step = severity is Severity.WARNING
    return Problem(
        code=ProblemCode.TOPIC_REPLACED,
        summary=f"Topic {live.name} is not the one that was {'set up' if is_first_step else 'retired'}: it "
        "was deleted and re-created since.",
        application=record.application_id,
        topic=live.name,
        expected=f"topic id {recorded.topic_id or 'unknown: none was recorded'}",
        found=f"topic id {live.topic_id}",
        why="Another application or user may have created it. Its records would be deleted, too.",
        fix=fix,
        severity=severity,
    )


_FIRST_STEP = (
    "If it may be deleted, continue: this run records its id. To keep it, set `lifecycle: released` before "
    "you remove the document."
)
_SECOND_STEP = (
    "To keep it, restore the document with `lifecycle: released` and run `pulumi up`. To delete it, restore "
    "the document with `lifecycle: retired` and run `pulumi up`, which records its id. Then remove the "
    "document again."
)
