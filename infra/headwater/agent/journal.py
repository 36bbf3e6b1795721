"""The journal of expansions, in the partition that the leader is assigned.

Writes are durable (`acks=all`). No record is ever removed: the topic is compacted, and no two records have
the same key. A line that was written twice (after a lost answer, or a crash) counts once, and lines that a
deposed leader wrote too late do not count (`journal_lines.valid_lines`).
"""

import socket
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

import structlog
from confluent_kafka import KafkaError, Message, Producer

from headwater.agent.leadership import LeadershipStatus
from headwater.agent.ports import NoLongerLeaderError
from headwater.kafka import Connection
from headwater.kafka.expansion_journal import (
    PARTITION,
    client_settings,
    journal_not_answered,
    journal_refused,
    read_lines,
)
from headwater.kafka.journal_lines import JournalLine, encode_line, key_of, latest_entries
from headwater.model.acls import Operation
from headwater.model.expansions import ExpansionEntry
from headwater.model.problems import Problem, ProblemsError

_WRITE_SECONDS = 15.0
_LARGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line before compression; the brokers limit what is sent."""

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
        self._write(JournalLine.from_entry(entry, term, self._host))
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
        skipped: list[Problem] = []
        lines = read_lines(
            self._connection,
            self._topic,
            self._client_id,
            end,
            skipped.append,
        )
        found = latest_entries(lines, term)
        self.problems = tuple(skipped)
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
                raise ProblemsError([journal_not_answered(self._topic, "confirm the leadership for")])

    def _write(self, line: JournalLine) -> int:
        """Return the offset of the line once all in-sync replicas have it; raises `ProblemsError`."""
        delivered: list[tuple[KafkaError | None, Message]] = []
        producer = self._connected()
        producer.produce(
            self._topic,
            partition=PARTITION,
            key=key_of(line, uuid4().hex),
            value=encode_line(line),
            on_delivery=lambda error, message: delivered.append((error, message)),
        )
        producer.flush(_WRITE_SECONDS + 1)
        if not delivered or delivered[0][0] is not None:
            self._producer = None
            error = delivered[0][0] if delivered else None
            if error is None:
                raise ProblemsError([journal_not_answered(self._topic, "write to")])
            raise ProblemsError([journal_refused(self._topic, "write to", error, Operation.WRITE)])
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


def highest_term(connection: Connection, topic: str, client_id: str) -> int:
    """Return the highest term of a line, 0 if there is no line; raises `ProblemsError`."""
    return max((line.term for line in read_lines(connection, topic, client_id)), default=0)
