"""Which topics of renamed stores and repartition topics can be copied; the problems of copies. No effects."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Application
from headwater_spark.driver.reshard.problems import UNCHANGED
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.transfers import Transfer

_CHANGELOG = "-changelog"

Renames = Sequence[tuple[str, str]]
"""(Old topic, new topic): full names of changelog or repartition topics."""


@attrs.frozen
class TopicCopy:
    """The topic `target` of the application gets what `source` has; both have `partitions`."""

    source: str
    target: InternalTopic
    partitions: int

    @property
    def is_changelog(self) -> bool:
        return self.target.kind is TopicKind.CHANGELOG

    @property
    def transfer(self) -> Transfer:
        return Transfer(self.source, self.target.name, self.partitions, self.partitions)

    @property
    def source_partitions(self) -> Sequence[TopicPartition]:
        return [(self.source, each) for each in range(self.partitions)]

    @property
    def target_partitions(self) -> Sequence[TopicPartition]:
        return [(self.target.name, each) for each in range(self.partitions)]


def plan_copies(
    renames: Renames, compiled: CompiledApplication, counts: Mapping[str, int]
) -> tuple[tuple[TopicCopy, ...], tuple[Problem, ...]]:
    """Return the copies for renamed topics, and all that prevents them.

    `compiled` is the application with the new names, `counts` is topic → partition count on the cluster.
    """
    targets = {topic.name: topic for topic in compiled.internal_topics}
    copies, wrong = [], []
    for old, new in renames:
        if (refused := _find_refusal(old, new, compiled.application, targets, counts)) is not None:
            wrong.append(refused)
        else:
            copies.append(TopicCopy(old, targets[new], counts[old]))
    if len({new for _, new in renames}) < len(renames) or len({old for old, _ in renames}) < len(renames):
        wrong.append(copy_refused(renames[0][1], "a topic is named twice", "each topic once", "Correct it."))
    return tuple(copies), tuple(wrong)


def _find_refusal(
    old: str,
    new: str,
    application: Application,
    targets: Mapping[str, InternalTopic],
    counts: Mapping[str, int],
) -> Problem | None:
    """Return why the state of topic `old` cannot be copied to `new`; None = it can be."""
    prefix = f"{StreamsConfig.from_application(application).topic_prefix or application.id}-"
    if new not in targets:
        names = ", ".join(sorted(targets))
        return copy_refused(
            new, "the application has no such internal topic", names, "Name one of these topics."
        )
    if old not in counts:
        return copy_refused(new, f"{old} does not exist", "the old topic", "Check the old name.")
    if not old.startswith(prefix):
        return copy_refused(
            new,
            f"{old} is not a topic of {application.id}",
            f"a topic whose name begins with {prefix}",
            "The application of the topic may run. State is copied only in one application.",
        )
    if old.endswith(_CHANGELOG) is not new.endswith(_CHANGELOG):
        return copy_refused(
            new,
            f"only one of {old} and {new} is a changelog topic",
            "two changelog topics, or two repartition topics",
            "Correct it.",
        )
    if old in targets:
        return copy_refused(
            new,
            f"{old} is still a topic of the application",
            "a topic that the application does not use any more",
            "Use the document of the new version.",
        )
    if new in counts and counts[new] != counts[old] == targets[new].partitions:
        return other_count(new, counts[new], counts[old])
    if len({counts[old], counts.get(new, counts[old]), targets[new].partitions}) > 1:
        return copy_refused(
            new,
            f"{old} has {counts[old]} partitions, the new topic {targets[new].partitions}",
            "equal partition counts",
            "Change names and partition counts one after the other: run `headwater reshard` before.",
        )
    return None


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
    return _incomplete_problem(
        application,
        f"The state of {application} is not copied: {reason}.",
        expected,
        reason,
        f"{remedy} Then run" if remedy else "Run",
    )


def copy_interrupted(application: str) -> Problem:
    """Return the problem of a copy that a signal has interrupted."""
    return _incomplete_problem(
        application,
        f"The copy of state of {application} was interrupted.",
        "a copy that is completed",
        "SIGINT or SIGTERM",
        "Run",
    )


def _incomplete_problem(application: str, summary: str, expected: str, found: str, run: str) -> Problem:
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
