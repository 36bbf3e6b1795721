"""The problems of records that are not processed yet, and of committed offsets, each with what to do."""

from headwater.model.problems import Problem, ProblemCode
from headwater_spark.driver.reshard.problems import UNCHANGED


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


def no_offsets(application: str) -> Problem:
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
        f"--group {application} --topic TOPIC:PARTITION`. Otherwise reset the application: "
        "`kafka-streams-application-reset.sh`.",
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
