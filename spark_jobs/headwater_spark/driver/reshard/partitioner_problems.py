"""The problems of partitioners with which a reshard is refused or interrupted, each with what to do."""

from collections.abc import Mapping, Sequence

from headwater.model.problems import Location, Problem, ProblemCode
from headwater_spark.driver.reshard.problems import INCOMPLETE, UNCHANGED, WRONG


def other_partitioner(application: str, what: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"{application} does not partition by Kafka's default partitioner: {what}.",
        expected="murmur2 of the key modulo the partition count",
        found=what,
        why="The partition of a key at the new count is not known. " + UNCHANGED,
        fix="A static partitioner keeps keys on their partitions: add partitions with `pulumi up` or the "
        "agent. If the partition follows from the key alone, name the partitioner with `--partitioner "
        "TOPIC=PARTITIONER`: a Python function or a class of Java. Otherwise reset the application.",
        location=at,
    )


def needless_partitioner(application: str, topic: str, read: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"{application} does not read {topic}, so its partitioner is not needed.",
        expected=f"one of {', '.join(read)}",
        found=f"--partitioner {topic}=…",
        why="A partitioner decides in which task a key is, so it belongs to a topic that the application "
        "reads. " + UNCHANGED,
        fix=f"Omit `--partitioner {topic}=…`, or correct the topic.",
    )


def different_partitioners(application: str, subtopology: str, found: Mapping[str, str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The inputs of sub-topology {subtopology} of {application} have different partitioners.",
        expected="one partitioner for all inputs of a task",
        found=", ".join(f"{topic}: {name}" for topic, name in sorted(found.items())),
        why="A key would be in different tasks, by the topic of its record. " + UNCHANGED,
        fix="Name the same partitioner with `--partitioner` for each of these topics.",
    )


def other_partitioners(application: str, topics: Sequence[str]) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The reshard of {application} has begun with other partitioners for {', '.join(topics)}.",
        expected="the same `--partitioner` options as when it began",
        found="other ones",
        why=INCOMPLETE,
        fix="Run the command again with the same `--partitioner` options as before.",
    )


def unchecked_partitioner(application: str, topic: str, name: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"It cannot be checked whether {name} is the partitioner of {topic}: the state of "
        f"{application} has one partition.",
        expected="entries in several partitions, which show that the partitioner is right",
        found="entries in one partition, where any partitioner places them",
        why="With a wrong partitioner or serde, or a partitioner that needs the value, entries would move to "
        "wrong partitions. " + WRONG + UNCHANGED,
        fix="Check the partitioner with some keys, and null as value: it must return the partitions of "
        "records that the producers have written to a topic with several partitions. Then add "
        f"`--unchecked-partitioner {topic}`.",
    )


def changed_partitioner(application: str, topic: str, name: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        topic=topic,
        summary=f"Entries of {topic} are not in the partitions that the partitioner {name} of {application} "
        "returns.",
        expected="a function that returns the same partitions as when the reshard began",
        found="entries of other partitions",
        why="The function returns other partitions than before, or another client has written to the topic. "
        + INCOMPLETE,
        fix="Restore the function as it was when the reshard began. Then run the command again.",
    )


def partitioner_failed(application: str, name: str, reason: str, *, has_begun: bool) -> Problem:
    is_function = ":" in name
    correct = (
        "Correct the function"
        if is_function
        else "Correct the class, `--classpath`, `--key-serde` or `--timeout`"
    )
    gets = (
        "Its arguments are a serialized key and a partition count."
        if is_function
        else "It gets the key, and null as value."
    )
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE if has_begun else ProblemCode.RESHARD_REFUSED,
        application=application,
        summary=f"The partitioner {name} of {application} failed: {reason}.",
        expected="a number from 0 up to the partition count for each key",
        found=reason,
        why=INCOMPLETE if has_begun else "The partition of a key is not known. " + UNCHANGED,
        fix=correct
        + (", without changing its results for other keys," if has_begun else ",")
        + f" and run the command again. {gets}",
    )
