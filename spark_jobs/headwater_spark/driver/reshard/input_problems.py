"""The problems of a reshard with partitioners, unprocessed records, offsets and topics, and what to do."""

from collections.abc import Mapping, Sequence

from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import Protocol
from headwater_spark.driver.reshard.problems import INCOMPLETE, UNCHANGED, WRONG

_CLASSIC = (
    "This creates a classic group. Brokers of Kafka 4.2 or later convert it when the application starts. "
    "With brokers of Kafka 4.1, start it with `group.protocol: classic`. "
)


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


def unprocessed_record(application: str, topic: str, partition: int, offset: int, expected: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        topic=topic,
        summary=f"The unprocessed record at offset {offset} of {topic}, partition {partition}, belongs to "
        f"partition {expected} at the new count.",
        expected="processed records, or records in the partition of their key at the new count",
        found="an unprocessed record of a key that moves",
        why="Its task would not have the state of the key any more. " + UNCHANGED,
        fix="Stop the producers, start the application, let it process all records, stop it, and run the "
        f"command again. If that is not possible: with `--rewrite-unprocessed {topic}`, Headwater writes "
        "the unprocessed records again, to their new partitions, and the application skips the old ones. "
        "Other readers of the topic read them twice.",
    )


def missing_offset(application: str, topic: str, partition: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        topic=topic,
        summary=f"{application} has no offset for partition {partition} of {topic}, which has records.",
        expected="an offset for each partition with records",
        found="none",
        why="Without an offset, `auto.offset.reset` decides which records are processed. " + UNCHANGED,
        fix="Start the application, let it process its input, stop it, and run the command again. If it "
        "never commits the partition (`auto.offset.reset: latest`), commit its end: "
        "`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-latest --execute "
        f"--group {application} --topic {topic}:{partition}`.",
    )


def no_offsets(application: str, protocol: Protocol) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        summary=f"{application} has state, but no committed offsets.",
        expected="offsets of the input that the state was built from",
        found="none",
        why="Brokers forget the offsets of a group without members after `offsets.retention.minutes`, a week "
        "by default. The application would process its input again, in addition to its state. " + UNCHANGED,
        fix="If you know up to where the application has processed its input, commit these offsets: "
        "`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-offset OFFSET --execute "
        f"--group {application} --topic TOPIC:PARTITION`. {_CLASSIC if protocol is Protocol.STREAMS else ''}"
        "Otherwise reset the application: `kafka-streams-application-reset.sh`.",
    )


def replaced_timestamps(application: str, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.RESHARD_REFUSED,
        application=application,
        topic=topic,
        summary=f"The brokers replace the timestamps of records in {topic}.",
        expected="`message.timestamp.type: CreateTime`, which Kafka Streams sets for its topics",
        found="`message.timestamp.type: LogAppendTime`",
        why="Entries that are written again would have other timestamps than before. " + UNCHANGED,
        fix=f"Set `message.timestamp.type=CreateTime` for {topic}: `kafka-configs.sh --bootstrap-server "
        f"BROKER --alter --topic {topic} --add-config message.timestamp.type=CreateTime`. Then run the "
        "command again.",
    )


def many_unprocessed(application: str, records: int, most: int) -> Problem:
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        summary=f"{records:,} unprocessed records of {application} would have to be written again.",
        expected=f"at most {most:,}",
        found=f"{records:,}",
        why="They are written in one transaction with the offsets, whose duration brokers limit. "
        + UNCHANGED,
        fix="Start the application, let it process its input, stop it, and run the command again.",
    )


def written_since_the_start(application: str, topic: str, partition: int, offset: int) -> Problem:
    """Return the problem of an unprocessed record that is found when entries have moved already."""
    name = f"`--rewrite-unprocessed {topic}`"
    return Problem(
        code=ProblemCode.UNPROCESSED_RECORDS,
        application=application,
        topic=topic,
        summary=f"The unprocessed record at offset {offset} of {topic}, partition {partition}, belongs to "
        "another partition at the new count.",
        expected="processed records, or records in the partition of their key at the new count",
        found="an unprocessed record of a key that moves",
        why="Producers have written records since the reshard began. Some entries have moved already: the "
        "application must not start before the reshard is complete.",
        fix=f"Stop the producers, and run the command again with {name}: Headwater writes the unprocessed "
        "records again, to their new partitions, and the application skips the old ones. Other readers of "
        "the topic read them twice.",
    )


def deleted_source(application: str, topic: str, partitions: int) -> Problem:
    """Return the problem of a source topic that was deleted after the reshard had begun.

    `partitions` is the count that it had then.
    """
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        topic=topic,
        summary=f"The reshard of {application} is not complete: the source topic {topic} was deleted.",
        expected="the topics with which the reshard has begun",
        found=f"no topic {topic}",
        why=f"{INCOMPLETE} The records of the topic are lost. If an offset of the deleted topic were left, "
        "the application would skip records of the new topic.",
        fix="Create the topic with its earlier settings: `kafka-topics.sh --bootstrap-server BROKER --create "
        f"--topic {topic} --partitions {partitions}`. Let the application read it from its beginning: "
        f"`kafka-consumer-groups.sh --bootstrap-server BROKER --group {application} --topic {topic} "
        "--reset-offsets --to-earliest --execute`. Then run the command again. It continues where it was "
        "interrupted.",
    )


def deleted_topics(application: str, topics: Sequence[str]) -> Problem:
    """Return the problem of internal topics that were deleted after the reshard had begun."""
    names, verb = ", ".join(topics), "was" if len(topics) == 1 else "were"
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"The reshard of {application} cannot be completed: {names} {verb} deleted.",
        expected="the topics with which the reshard has begun",
        found=f"no topic {names}",
        why="What the topic had is lost: state of the application, or records that it has not processed.",
        fix="Reset the application: run `kafka-streams-application-reset.sh`, and delete its local state on "
        "each machine. It processes its input again.",
    )


def expanded_meanwhile(application: str, topics: Mapping[str, int]) -> Problem:
    """Return the problem of source topics that have more partitions than the reshard was for."""
    shown = ", ".join(f"{topic}: {count}" for topic, count in sorted(topics.items()))
    return Problem(
        code=ProblemCode.RESHARD_INCOMPLETE,
        application=application,
        summary=f"Source topics of {application} were expanded further during the reshard: {shown}.",
        expected="source topics with the requested partition counts",
        found=shown,
        why="The state has moved to the requested partitions, which are too few now. The application must "
        "not start: Kafka Streams would stop, or process records without the state of their key.",
        fix="Stop the producers, and run the command again without `--partitions`: it moves the state to the "
        "present partitions.",
    )
