"""The problems with which a copy of state is refused, interrupted or not undone, each with what to do."""

from collections.abc import Sequence

from headwater.model.problems import Problem, ProblemCode
from headwater_spark.driver.reshard.problems import UNCHANGED


def copy_incomplete(application: str, topics: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"A copy of state of {application} is not complete: {', '.join(topics)}.",
        expected="topics that have all records",
        found="a copy that was interrupted",
        why="Some new topics may have a part of their records. " + UNCHANGED,
        fix="Run `headwater state copy` again, with the same names.",
    )


def has_run(application: str, topic: str) -> Problem:
    """Return the problem of a copy whose original has changed meanwhile."""
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        topic=topic,
        summary=f"{application} has run while its state was copied: {topic} has new records.",
        expected="an application that is stopped until the copy is complete",
        found="records that are not in the copy",
        why="The new version would begin with an outdated state. The old topics have not changed.",
        fix="Stop all instances, and run the command again: it copies from the beginning.",
    )


def copy_failed(
    application: str, reason: str, expected: str = "brokers that answer", remedy: str = ""
) -> Problem:
    """Return the problem of a copy that has failed; `remedy` is what to do before it is run again."""
    return _incomplete(
        application,
        f"The state of {application} is not copied: {reason}.",
        expected,
        reason,
        f"{remedy} Then run" if remedy else "Run",
    )


def copy_interrupted(application: str) -> Problem:
    """Return the problem of a copy that a signal has interrupted."""
    return _incomplete(
        application,
        f"The copy of state of {application} was interrupted.",
        "a copy that is completed",
        "SIGINT or SIGTERM",
        "Run",
    )


def _incomplete(application: str, summary: str, expected: str, found: str, run: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=summary,
        expected=expected,
        found=found,
        why="Some new topics may have a part of their records. The old topics have not changed.",
        fix=f"{run} the command again, before the new version starts.",
    )


def not_undone(application: str, topic: str) -> Problem:
    """Return the problem of a copy that has other records than its original."""
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"The copy to {topic} cannot be undone: the topic has other records than the old one, or its "
        "records were processed.",
        expected="a topic that has nothing but the copy",
        found="other records, or another offset",
        why="The new version of the application has run: its newest state is in this topic only. Or the old "
        "version has run since the copy began, or the copy is not complete. " + UNCHANGED,
        fix="If the new version has run after a complete copy, keep it. If it has not run, or if its results "
        "are not needed, delete the topic by hand: the old version then continues with the old state, at the "
        "present offsets of the group. Do not start the new version with a copy that is not complete.",
    )


def undo_failed(application: str, reason: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The copy of state of {application} is not undone: {reason}.",
        expected="brokers that answer, and permission to delete the new topics",
        found=reason,
        why="The new topics, or some of them, still exist. The old topics have not changed.",
        fix="Correct the reason, and run the command again. It deletes the topics that remain.",
    )


def creation_failed(reasons: str) -> Problem:
    """Return the problem of new topics that cannot be created; `reasons` names each topic."""
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        summary=f"The state cannot be copied: {reasons}.",
        expected="new topics that can be created",
        found=reasons,
        why="No record was copied. Other new topics may have been created: they are empty.",
        fix="Correct the reasons, and run the command again. It uses the empty topics.",
    )


def other_count(topic: str, found: int, old: int) -> Problem:
    """Return the problem of a new topic that has `found` partitions, the old one `old`."""
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        topic=topic,
        summary=f"The state cannot be copied to {topic}: it has {found} partitions, the old topic {old}.",
        expected=f"{old} partitions",
        found=f"{found} partitions",
        why="Each partition is copied to the partition with its number. No record was copied.",
        fix=delete_unless_started(topic),
    )


def delete_unless_started(topic: str) -> str:
    """Return what to do about a new topic that this copy has not created."""
    return (
        "If the application has started with the new name, its old state is out of date: do not copy it. "
        f"Otherwise delete {topic}, and run the command again."
    )


def copy_refused(topic: str, reason: str, expected: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        topic=topic,
        summary=f"The state cannot be copied to {topic}: {reason}.",
        expected=expected,
        found=reason,
        why="An application restores all that is in its changelog topic. " + UNCHANGED,
        fix=fix,
    )
