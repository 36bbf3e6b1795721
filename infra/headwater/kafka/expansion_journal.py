"""Read the journal of a group of agents: which agent expanded which topics (`journal_lines` has the format).

It is in the group's coordination topic, one topic with one partition.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka.bounded_records import BoundedTopic, ReadRecord
from headwater.kafka.client_settings import client_log
from headwater.kafka.connection import Connection
from headwater.kafka.journal_lines import JournalLine, decode_line, past_expansions
from headwater.kafka.kafka_errors import is_answer, is_denial, not_authorized
from headwater.kafka.reader import ClusterReader
from headwater.model.acls import Operation
from headwater.model.cluster import ClusterSnapshot
from headwater.model.expansions import AGENT_PREFIX, AgentExpansion, AgentExpansions
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity
from headwater.model.records import OWNERSHIP_TOPIC, SetupRecord
from headwater.model.untrusted import LARGEST_VALUE, MOST_UNREAD, UnreadReason, UnreadRecord

PARTITION = 0
_READ_SECONDS = 30.0
_CLIENTS = 8
_MOST_JOURNALS = 100
"""Each user who may create topics with their prefix could make a plan read more."""


def coordination_topic(group: str) -> str:
    """Return the topic of a group of agents; the id of their consumer group is the same."""
    return f"{AGENT_PREFIX}{group}"


def client_settings(connection: Connection, client_id: str) -> dict[str, Any]:
    """Return the settings of all clients of a coordination topic; raises `ProblemsError`."""
    return {
        **connection.librdkafka_settings(),
        "client.id": client_id,
        "reconnect.backoff.max.ms": 1_000,
        "logger": client_log(_log_line),
    }


def _log_line(line: str) -> None:
    # Imports rich and asyncio; commands that only read a journal log nothing.
    import structlog  # noqa: PLC0415

    structlog.get_logger(__name__).debug("librdkafka", line=line)


def read_lines(
    connection: Connection,
    topic: str,
    client_id: str,
    end: int | None = None,
    on_skipped: Callable[[Problem], object] = lambda _: None,
    *,
    group: str = "",
    timeout_seconds: float = _READ_SECONDS,
) -> Iterator[JournalLine]:
    """Yield all lines in the order of the log, up to the offset `end` (default: the current end).

    `on_skipped` gets a problem for each of the first `MOST_UNREAD` records that no agent has written. The
    client asks for the coordinator of `group` (default: the agents' group), which requires Describe on it.
    Raises `ProblemsError` if the topic does not exist or the brokers do not answer in time.
    """
    settings = {
        **client_settings(connection, client_id),
        "group.id": group or topic,  # the consumer never joins: the partition is assigned manually
    }
    reported = 0
    try:
        for record in BoundedTopic(settings, topic, PARTITION, timeout_seconds).records(end):
            if not isinstance(record, UnreadRecord):
                if (line := decode_line(record.value)) is not None:
                    yield line
                    continue
                if record.value is None:
                    continue
            if reported < MOST_UNREAD:
                reported += 1
                unread = record if isinstance(record, UnreadRecord) else _unread_record(topic, record)
                on_skipped(_skipped_record(unread))
    except KafkaException as error:
        reason = error.args[0]
        is_absent = reason.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
        problem = _no_journal(topic) if is_absent else journal_refused(topic, "read", reason)
        raise ProblemsError([problem]) from None


def _unread_record(topic: str, record: ReadRecord) -> UnreadRecord:
    is_large = len(record.value or b"") > LARGEST_VALUE
    return UnreadRecord(
        topic=topic,
        partition=PARTITION,
        offset=record.offset,
        last_offset=record.offset,
        reason=UnreadReason.TOO_LARGE if is_large else UnreadReason.NOT_OURS,
    )


def read_agent_expansions(
    connection: Connection, journals: Sequence[str], timeout_seconds: float
) -> AgentExpansions:
    """Return what the `journals`, names of coordination topics, contain about topics that agents expanded.

    A journal that cannot be read, or that the user may not read, is in `unread`: no decision requires it.
    """

    def read(journal: str) -> tuple[AgentExpansion, ...] | None:
        try:
            # Each plan may describe this group. It may not always describe the group of the agents.
            lines = read_lines(
                connection, journal, "headwater", group=OWNERSHIP_TOPIC, timeout_seconds=timeout_seconds
            )
            return tuple(_agent_expansions(lines))
        except ProblemsError:
            return None

    with ThreadPoolExecutor(_CLIENTS) as pool:
        answers = dict(zip(journals, pool.map(read, journals[:_MOST_JOURNALS]), strict=False))
    found = tuple(expansion for answer in answers.values() for expansion in answer or ())
    read_journals = tuple(name for name in journals if answers.get(name) is not None)
    unread = tuple(name for name in journals if answers.get(name) is None)
    return AgentExpansions(found, unread, read_journals)


def with_agent_expansions(
    reader: ClusterReader, snapshot: ClusterSnapshot, records: Mapping[str, SetupRecord]
) -> ClusterSnapshot:
    """Return `snapshot` with the expansions by agents, if another client than the stack has expanded topics.

    `records` is application id → setup record. Without such topics, nothing is read.
    """
    recorded = [topic for record in records.values() for topic in record.topics.values()]
    is_asked = any(
        snapshot.topics[topic.name].partitions > topic.partitions
        for topic in recorded
        if topic.name in snapshot.topics
    )
    if not is_asked:
        return snapshot
    journals = sorted(name for name in snapshot.topics if name.startswith(AGENT_PREFIX))
    return attrs.evolve(snapshot, expansions=reader.agent_expansions(journals))


def _agent_expansions(lines: Iterable[JournalLine]) -> Iterator[AgentExpansion]:
    for expansion in past_expansions(lines):
        for change in expansion.topics:
            done = next((line for line in reversed(expansion.lines) if change.topic in line.done), None)
            if done is not None:
                at = f"{done.at:%Y-%m-%d %H:%M:%S} UTC"
                yield AgentExpansion(change.topic, change.new, done.client_id, done.host, at)


def journal_refused(
    topic: str, what: str, error: KafkaError, operation: Operation = Operation.READ
) -> Problem:
    """Return the problem for a request about the journal that failed; it needs permission `operation`."""
    if is_denial(error):
        return not_authorized(error, f"{what} topic", topic, operation, why=_NOT_RECORDED, purpose="agent")
    return journal_not_answered(
        topic, what, f"{error.name()}: {error.str()}", is_from_broker=is_answer(error)
    )


_NOT_RECORDED = "The agent expands nothing that it cannot record."


def journal_not_answered(topic: str, what: str, reason: str = "", *, is_from_broker: bool = False) -> Problem:
    """Return the problem for a request about the journal without an answer, or that the brokers refused.

    `is_from_broker`: `reason` is an error of the brokers, not of the client.
    """
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary=f"The request to {what} the journal of expansions failed."
        if is_from_broker
        else f"The Kafka brokers did not answer the request to {what} the journal of expansions.",
        topic=topic,
        expected="success" if is_from_broker else "an answer",
        found=reason or "none in time",
        why=_NOT_RECORDED,
        fix="The agent retries. If the problem persists, check that the brokers answer, and that "
        f"partition 0 of topic {topic} has a leader and as many replicas in sync as its "
        f"min.insync.replicas: `kafka-topics.sh --bootstrap-server BROKER --describe --topic {topic}`.",
    )


def _no_journal(topic: str) -> Problem:
    return Problem(
        code=ProblemCode.JOURNAL_NOT_FOUND,
        summary="No journal of expansions found.",
        topic=topic,
        expected="the topic that the agents of a group create when they first run",
        found="no such topic, or no permission to describe it",
        why="Without the journal there is no history, and an agent expands nothing.",
        fix="If no agent of this group has run on this cluster, there is no history: name the cluster of the "
        "agents, and their group (`--group`). If an agent of this group runs, the topic was deleted: restart "
        f"an agent, which creates it. If its user may not create topics, create {topic} with one partition "
        "and cleanup.policy=compact. If the topic exists, grant the user Describe and Read on it.",
    )


def _skipped_record(record: UnreadRecord) -> Problem:
    """Return the problem for a record of the journal that no agent has written."""
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        summary=f"A record in {record.location} is {record.reason.value}.",
        topic=record.topic,
        expected="only lines that agents have written",
        found=f"offset {record.offset}",
        why="The record is skipped, and all other lines are used. Nothing is expanded because of it.",
        fix=f"Find out who writes to {record.topic}, and remove the permission. To remove the record, stop "
        "the agents, delete the topic and start them again: they create it, and the history of expansions "
        "begins again.",
        severity=Severity.WARNING,
    )
