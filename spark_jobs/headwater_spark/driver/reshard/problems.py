"""The problems with which a reshard is refused or interrupted, each with what to do."""

from collections.abc import Mapping, Sequence

from headwater.model.problems import Location, Problem, ProblemCode

UNCHANGED = "Nothing was changed."
INCOMPLETE = "Some entries may have moved, others not. The application must not start before all have."
WRONG = (
    "Records would be processed without the state of their key, and results would be wrong without an error. "
)


AUTOSCALING = "partition.autoscaling.enabled"


def group_active(application: str, state: str, seconds: float, *, has_begun: bool = False) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        application=application,
        summary=f"{application} runs: its consumer group has members.",
        expected="a group without members",
        found=f"a group that is {state} after {seconds:g} s",
        why="A running application writes its state while it is moved. "
        + ("The reshard or copy has begun; no state has changed." if has_begun else UNCHANGED),
        fix="Stop all instances. A stopped instance of Kafka Streams is a member until `session.timeout.ms` "
        "has passed, 45 s by default. Then run the command again.",
    )


def unknown_source(application: str, topic: str, sources: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"{topic} is not a source topic of {application}, or does not exist.",
        expected=f"one of {', '.join(sources)}",
        found=topic,
        why="The counts of internal topics follow from the source topics. " + UNCHANGED,
        fix="Name a source topic with `--partitions TOPIC=N`.",
    )


def fewer_partitions(application: str, topic: str, before: int, after: int) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"{topic} would have {after} instead of {before} partitions.",
        expected=f"at least {before}",
        found=str(after),
        why="Kafka cannot remove partitions. " + UNCHANGED,
        fix=f"Request at least so many partitions of the source topics that {topic} keeps {before}.",
    )


def missing_topics(application: str, topics: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        application=application,
        summary=f"{application} has no topic {', '.join(topics)}.",
        expected="the internal topics of the document",
        found="topics that do not exist",
        why="The document may describe another application, which does not have this state. " + UNCHANGED,
        fix="Check the document with `headwater plan`. An application that has never run has no state to "
        "move: expand its source topics, and set it up.",
    )


def with_processors(application: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"{application} declares `processors`, so its state does not move with the partitions.",
        expected="an application with a task for each partition",
        found="`processors`",
        why="A processor reads several partitions. " + UNCHANGED,
        fix="Use `headwater processors move --offline` or `headwater processors expand`.",
        location=at,
    )


def store_refused(application: str, store: str, reason: str, fix: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The entries of store {store} of {application} cannot move: {reason}.",
        expected="a changelog topic, and entries that belong to the key of an input record",
        found=reason,
        why=WRONG + UNCHANGED,
        fix=fix,
        location=at,
    )


def unclear_layout(application: str, store: str, layouts: Sequence[str], at: Location | None) -> Problem:
    found = f"entries that fit {', '.join(layouts)}" if layouts else "entries that fit no layout"
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The layout of the keys in store {store} of {application} is not certain.",
        expected="enough entries, all of them in the partition of their record key, with one layout",
        found=found,
        why="The document does not say what the store keeps. " + WRONG + UNCHANGED,
        fix=f"Name the layout with `--layout {store}=LAYOUT`. If the entries fit none, the producers or the "
        "application use another partitioner, or the store has other keys than the input. If the partition "
        "follows from the key alone, name the partitioner with `--partitioner TOPIC=PARTITIONER`: a Python "
        "function or a class of Java. Otherwise reset the application.",
        location=at,
    )


def needless_layout(application: str, store: str, unknown: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The layout of store {store} of {application} cannot be named.",
        expected=f"one of the stores whose layout the document does not show: {', '.join(unknown) or 'none'}",
        found=f"--layout {store}=…",
        why="The document has no such store, or shows its layout. With a wrong one, entries would move to "
        "wrong partitions. " + UNCHANGED,
        fix=f"Omit `--layout {store}`, or correct the name.",
    )


def different_counts(application: str, subtopology: str, found: Mapping[str, int], when: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The topics of sub-topology {subtopology} of {application} have different partition counts "
        f"{when}.",
        expected="one count for all inputs and changelog topics",
        found=", ".join(f"{topic}: {count}" for topic, count in sorted(found.items())),
        why="A key of the narrower topic would be in another task than the same key of the wider one. "
        + UNCHANGED,
        fix="Request the same count for all source topics of the sub-topology, with `--partitions`. If the "
        "changelog topics differ, they were changed by hand: `headwater plan` says how to repair them. "
        "Otherwise reset the application.",
    )


def different_left_counts(application: str, store: str, topics: Sequence[str]) -> Problem:
    return store_refused(
        application,
        store,
        f"its responses go to topics with different counts ({', '.join(topics) or 'none'})",
        "Reset the application.",
        None,
    )


def held_back(application: str, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        topic=topic,
        summary=f"Some records of {topic} were processed before earlier ones.",
        expected="records that were processed in their order",
        found="read positions in the committed metadata",
        why="They cannot be written again without being processed twice. " + UNCHANGED,
        fix="Start the application, let it process its input, stop it, and run the command again.",
    )


def open_transaction(application: str, topic: str, partition: int, *, has_begun: bool = False) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        topic=topic,
        summary=f"A transaction on partition {partition} of {topic} is not complete.",
        expected="complete transactions",
        found="an open one",
        why="A client was killed, or still runs. Its records are not visible until the brokers end the "
        "transaction." + ("" if has_begun else f" {UNCHANGED}"),
        fix="Wait until the transaction has timed out (`transaction.timeout.ms`, 10 s by default in Kafka "
        "Streams), and run the command again.",
    )


def misplaced_entry(application: str, topic: str, partition: int, expected: int) -> Problem:
    return Problem(
        code=ProblemCode.MISPLACED_ENTRIES,
        application=application,
        topic=topic,
        summary=f"Partition {partition} of {topic} has an entry whose key belongs to partition {expected}.",
        expected="each entry in the partition of its key, by Kafka's default partitioner or `--partitioner`",
        found=f"an entry of partition {expected} in partition {partition}",
        why="The producers use another partitioner, or partitions were added before while the application "
        "had state. So the new partition of a key is not known. " + UNCHANGED,
        fix="If the partition follows from the key alone, name the partitioner with `--partitioner "
        "TOPIC=PARTITIONER`: a Python function or a class of Java. Otherwise reset the application, so that "
        "it processes its input again.",
    )


def misdirected_subscription(application: str, topic: str, *, has_begun: bool) -> Problem:
    return Problem(
        code=ProblemCode.MISPLACED_ENTRIES,
        application=application,
        topic=topic,
        summary=f"A subscription of {topic} does not name the partition of its left key.",
        expected="the partition of the left key, by Kafka's default partitioner",
        found="another one",
        why="Responses would go to a task without the left row." + ("" if has_begun else f" {UNCHANGED}"),
        fix="Reset the application, so that it processes its input again.",
    )


def different_close_times(application: str, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"Tasks of {application} have emitted closed windows up to different times.",
        expected="a new count that is a multiple of the old one, so that each task continues one old task",
        found="tasks that continue several old ones",
        why="Some windows would be emitted twice, or never. " + UNCHANGED,
        fix=f"Request a multiple of the present partition count of {topic}.",
    )


def expands_its_topics(application: str, sources: Sequence[str], at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"{application} could start before the reshard is complete: with autoscaling, its topics are "
        "expanded.",
        expected=f"`{AUTOSCALING}: false`, or source topics with their old partition counts",
        found=f"`{AUTOSCALING}: true`, and {', '.join(sources)} with the new count before the last step",
        why="Kafka Streams does not start while the counts of its topics do not fit. With autoscaling, an "
        "instance with the library, an agent or `pulumi up` that has read them just before the reshard "
        "begins expands them. Then records are processed without the state of their keys: results would be "
        "wrong, and the reshard could not be completed. " + UNCHANGED,
        fix=f"Set `{AUTOSCALING}` to false in the document, for agents, too, and in the properties of the "
        "application on each machine. Then run the command again.",
        location=at,
    )


def not_complete(application: str, changes: Mapping[str, tuple[int, int]]) -> Problem:
    shown = ", ".join(f"{topic}: {before} to {after}" for topic, (before, after) in sorted(changes.items()))
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"A reshard of {application} has begun and is not complete.",
        expected=shown,
        found="a reshard that was interrupted, or runs now",
        why="Some entries may have moved, others not. The application must not start before all have.",
        fix="Run the command again without `--check`. It continues where it was interrupted.",
    )


def other_target(application: str, changes: Mapping[str, tuple[int, int]]) -> Problem:
    shown = ", ".join(f"{topic}: {before} to {after}" for topic, (before, after) in sorted(changes.items()))
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"Another reshard of {application} is not complete.",
        expected=shown,
        found="another request",
        why="Some entries have moved already. The application must not start before all have.",
        fix="Run the command again without `--partitions`: it completes the earlier request.",
    )


def kafka_failed(application: str, reason: str) -> Problem:
    """Return the problem of a reshard that has begun."""
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The reshard of {application} is not complete: {reason}.",
        expected="brokers that answer, and accept the changes of the reshard",
        found=reason,
        why=INCOMPLETE,
        fix="If the brokers name a policy, a quota, a limit or a permission, have it changed. Then run the "
        "command again. It continues where it was interrupted.",
    )


def reshard_interrupted(application: str) -> Problem:
    """Return the problem of a reshard that a signal has interrupted after it had begun."""
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The reshard of {application} was interrupted.",
        expected="a reshard that is completed",
        found="SIGINT or SIGTERM",
        why=INCOMPLETE,
        fix="Run the command again. It continues where it was interrupted.",
    )


def expansion_failed(application: str, reason: str) -> Problem:
    """Return the problem of counts that brokers refuse, in a check that changes nothing."""
    return Problem(
        code=ProblemCode.REFUSED_BY_BROKERS,
        application=application,
        summary=f"The topics of {application} cannot be expanded: {reason}.",
        expected="partitions that brokers add for this user",
        found=reason,
        why=UNCHANGED,
        fix="Correct the reason that the brokers name, and run the command again. `headwater acls DOCUMENT "
        "--self --for reshard` lists the permissions.",
    )


def spark_not_started(application: str, reason: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"Spark did not start, so the state of {application} does not move.",
        expected="Java 17 or newer, and a master that can be reached",
        found=reason,
        why="The reshard is as it was before this command.",
        fix="Read the output of Spark and Java above, and run the command again. Without `--spark`, this "
        "machine moves the state.",
    )


def spark_ended_at_start(application: str, reason: str) -> Problem:
    """Return the problem that the Spark session has ended before its first job."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"Spark has ended before it moved the state of {application}.",
        expected="a Spark session that runs until the end",
        found=reason,
        why="The reshard is as it was before this command.",
        fix="Read the output of Spark and Java above. If the system has killed Java for lack of memory, free "
        "memory on this machine. Run the command again. Without `--spark`, this machine moves the state.",
    )


def spark_ended(application: str, reason: str, *, has_begun: bool) -> Problem:
    """Return the problem that the Spark session has ended before the reshard."""
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE if has_begun else ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"Spark has ended before the reshard of {application}.",
        expected="a Spark session that runs until the end",
        found=reason,
        why=INCOMPLETE if has_begun else "The state is read before anything changes. " + UNCHANGED,
        fix="Run the command again. "
        + ("It continues where it was interrupted. " if has_begun else "")
        + "Without `--spark`, this machine moves the state.",
    )


def shares_failed(application: str, reason: str, *, has_begun: bool) -> Problem:
    """Return the problem that tasks of Spark fail again and again, but not with an error of Kafka."""
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE if has_begun else ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"The reshard of {application} is not complete: {reason}."
        if has_begun
        else f"The state of {application} was not checked: {reason}.",
        expected="tasks of Spark that succeed, on executors with Headwater's dependencies",
        found=reason,
        why=INCOMPLETE if has_begun else "The state is read before anything changes. " + UNCHANGED,
        fix="Correct the reason; the logs of Spark's executors say more. Run the command again. "
        + ("It continues where it was interrupted. " if has_begun else "")
        + "Without `--spark`, this machine moves the state.",
    )


def unreadable_journal(application: str, reason: str) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        application=application,
        summary=f"The record of a reshard of {application} cannot be read: {reason}.",
        expected="what `headwater reshard` has committed for the changelog topics",
        found=reason,
        why="It says how far the state has moved.",
        fix="Find out who commits for the group, or has deleted topics of the application, and remove the "
        "permission. Then reset the application: `kafka-streams-application-reset.sh`.",
    )


def wrong_copy(
    application: str, topic: str, partition: int, expected: str, found: str, *, is_cleared: bool = False
) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        topic=topic,
        summary=f"Partition {partition} of {topic} does not have the entries that were written to it.",
        expected=expected,
        found=found,
        why="Another client has written to the topic meanwhile, or has deleted records. "
        + (
            "Its entries were deleted from their old partitions already."
            if is_cleared
            else "No entry was deleted from its old partition."
        ),
        fix="Make sure that no instance of the application runs, and run the command again. If it finds the "
        "same, an instance has processed records before all entries had moved. Then reset the application: "
        "run `kafka-streams-application-reset.sh`, and delete its local state on each machine.",
    )
