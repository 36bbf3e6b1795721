"""The journal of expansions, in the partition that the leader is assigned.

Writes are durable (`acks=all`). No record is ever removed: the topic is compacted, and no two records have
the same key. A line that was written twice (after a lost answer, or a crash) counts once, and lines that a
deposed leader wrote too late do not count (`journal_lines.valid_lines`).
"""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from uuid import uuid4

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headwater.agent.coordination_topic import PARTITION, client_settings
from headwater.agent.journal_lines import JournalLine, decode, encode, key_of, latest_entries
from headwater.agent.leadership import LeadershipStatus
from headwater.agent.ports import NoLongerLeaderError
from headwater.agent.state import ExpansionEntry
from headwater.kafka import Connection
from headwater.kafka.bounded_records import BoundedTopic, ReadRecord
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity
from headwater.model.untrusted import LARGEST_VALUE, MOST_UNREAD, UnreadReason, UnreadRecord

_WRITE_SECONDS = 15.0
_READ_SECONDS = 30.0
_LARGEST_LINE = 64 * 1024 * 1024  # of a line before compression; the brokers' limit is on what is sent

_log = structlog.get_logger(__name__)


class KafkaJournal:
    """The journal of the agents of one coordination topic (`ports.Journal`); used by one thread.

    `leadership_status` asks the cluster whether this agent still leads in a term (`KafkaLeadership.status`).
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        client_id: str,
        leadership_status: Callable[[int], LeadershipStatus],
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._client_id = client_id
        self._leadership_status = leadership_status
        self._host = socket.gethostname()
        self._producer: Producer | None = None
        self.problems: tuple[Problem, ...] = ()
        """A problem for each record that no agent has written, since the beginning of the term."""

    def append(self, entry: ExpansionEntry, term: int) -> None:
        """See `ports.Journal.append`.

        Confirms the term after the brokers have the line: then no newer term began before it in the log.
        """
        self._write(JournalLine.of(entry, term, self._host))
        self._confirm(term)

    def latest(self, term: int) -> Mapping[str, ExpansionEntry]:
        """See `ports.Journal.latest`.

        The line that begins the term ends every earlier term: no valid line of them can follow.
        """
        beginning = JournalLine(
            term=term, client_id=self._client_id, host=self._host, wall_ms=time.time_ns() // 1_000_000
        )
        end = self._write(beginning) + 1
        self._confirm(term)
        unread: list[UnreadRecord] = []
        lines = read_lines(
            self._connection,
            self._topic,
            self._client_id,
            end,
            lambda each: unread.append(each) if len(unread) < MOST_UNREAD else None,
        )
        found = latest_entries(lines, term)
        self.problems = tuple(map(skipped_record, unread))
        for problem in self.problems:
            _log.warning("journal record skipped", reason=problem.summary, fix=problem.fix)
        return found

    def close(self) -> None:
        self._producer = None  # no line is in flight: each write waited for its acknowledgment

    def _confirm(self, term: int) -> None:
        match self._leadership_status(term):
            case LeadershipStatus.DEPOSED:
                raise NoLongerLeaderError(f"term {term} is over")
            case LeadershipStatus.UNKNOWN:
                raise ProblemsError([_no_answer(self._topic, "confirm the leadership for")])

    def _write(self, line: JournalLine) -> int:
        """Return the offset of the line once all in-sync replicas have it; raises `ProblemsError`."""
        delivered: list[tuple[KafkaError | None, Message]] = []
        producer = self._connected()
        producer.produce(
            self._topic,
            partition=PARTITION,
            key=key_of(line, uuid4().hex),
            value=encode(line),
            on_delivery=lambda error, message: delivered.append((error, message)),
        )
        producer.flush(_WRITE_SECONDS + 1)
        if not delivered or delivered[0][0] is not None:
            self._producer = None
            reason = delivered[0][0].str() if delivered and delivered[0][0] else ""
            raise ProblemsError([_no_answer(self._topic, "write to", reason)])
        offset: int = delivered[0][1].offset()  # type: ignore[assignment]  # known once it is delivered
        return offset

    def _connected(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(
                {
                    **client_settings(self._connection, self._client_id),
                    "acks": "all",
                    "delivery.timeout.ms": int(_WRITE_SECONDS * 1_000),
                    "linger.ms": 0,
                    # A retried line may be in the log twice, but never after a later line.
                    "max.in.flight.requests.per.connection": 1,
                    "compression.type": "gzip",
                    "message.max.bytes": _LARGEST_LINE,
                }
            )
        return self._producer


def read_lines(
    connection: Connection,
    topic: str,
    client_id: str,
    end: int | None = None,
    on_unread: Callable[[UnreadRecord], object] = lambda _: None,
) -> Iterator[JournalLine]:
    """Yield all lines in the order of the log, up to the offset `end` (default: the current end).

    Records that no agent has written are passed to `on_unread`. Raises `ProblemsError` if the topic does not
    exist or the brokers do not answer in time.
    """
    settings = {
        **client_settings(connection, client_id),
        "group.id": topic,  # the consumer never joins: the partition is assigned manually
    }
    try:
        for record in BoundedTopic(settings, topic, PARTITION, _READ_SECONDS).records(end):
            if isinstance(record, UnreadRecord):
                on_unread(record)
            elif (line := decode(record.value)) is not None:
                yield line
            elif record.value is not None:
                on_unread(_unread_record(topic, record))
    except KafkaException as error:
        reason = error.args[0]
        is_absent = reason.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
        problem = _no_journal(topic) if is_absent else _no_answer(topic, "read", reason.str())
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


def highest_term(connection: Connection, topic: str, client_id: str) -> int:
    """Return the highest term of a line, 0 if there is no line; raises `ProblemsError`."""
    return max((line.term for line in read_lines(connection, topic, client_id)), default=0)


def _no_answer(topic: str, what: str, reason: str = "") -> Problem:
    return Problem(
        code=ProblemCode.REQUEST_NOT_ANSWERED,
        summary=f"The Kafka brokers did not answer the request to {what} the journal of expansions.",
        topic=topic,
        expected="an answer",
        found=reason or "none in time",
        why="The agent expands nothing that it cannot record.",
        fix="The agent retries. If the problem persists, check the brokers and the ACLs: the agent needs "
        "Read, Write and Describe on this topic, and Read on the consumer group of the same name.",
    )


def _no_journal(topic: str) -> Problem:
    return Problem(
        code=ProblemCode.JOURNAL_NOT_FOUND,
        summary="No journal of expansions found.",
        topic=topic,
        expected="the topic that the agents of a group create when they first run",
        found="no such topic, or no permission to describe it",
        why="There is no history to show.",
        fix="Use the same --group as the agents, and a user with permission to read the topic.",
    )


def skipped_record(record: UnreadRecord) -> Problem:
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
