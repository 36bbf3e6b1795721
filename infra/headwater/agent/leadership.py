"""The election of the leader among agents of a group, and how it is confirmed and renewed.

The group coordinator decides. It assigns the partition to one member at a time, revokes it when the member
sends no heartbeat for `session_timeout_ms`, and accepts an offset commit only from a member of the current
generation. That commit is the fence: `confirm` makes one right before each change. The metadata of the commit
also holds the term: each new leader increments it, and no member of an earlier generation can.

An agent that is paused between `confirm` and its request can still send the request much later. That cannot
over-partition a topic: `createPartitions` names an absolute count, which the controller rejects unless it is
higher than the current one, and the count followed from source topics, which never shrink. A late request can
only do what the new leader does anyway. (The exception is a source topic that is deleted and re-created with
fewer partitions at that moment: the next read of the cluster reports that the topic is over-partitioned.)
"""

import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING

import attrs
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from headwater.agent.coordination_topic import begin_creation, is_created, protect_records
from headwater.kafka import Connection
from headwater.kafka.expansion_journal import PARTITION, client_settings
from headwater.kafka.pending_requests import in_background
from headwater.model.problems import ProblemsError

if TYPE_CHECKING:
    from concurrent.futures import Future


DEFAULT_SESSION_TIMEOUT_MS = 10_000
"""An agent without heartbeats for this long loses the leadership. Brokers require at least 6 s
(`group.min.session.timeout.ms`)."""
_LONGEST_SOCKET_MS = 300_000
"""The longest `socket.timeout.ms` that librdkafka accepts; sessions may be longer."""
_LONGEST_ITERATION_MS = 120_000
"""Of the agent's loop: an agent whose loop hangs loses the leadership."""
_CONFIRM_SECONDS = 5.0
_WAIT_SECONDS = 0.01
_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 2.0
_TERM = "term "
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the library's own codes begin with an underscore
_DEPOSED = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID)
_RENEWALS_PER_SESSION = 3

_log = structlog.get_logger(__name__)


@attrs.define
class Renewal:
    """When to renew a term by a commit, and whether the answer to the last commit is overdue.

    Times are seconds of a monotonic clock. `commit` is the metadata of the commit without an answer; None =
    there is none. Only an unanswered commit ends the leadership, not the time since the last answer: the loop
    may execute an action for longer than a session, while heartbeats continue and an answer waits to be read.
    """

    session_seconds: float
    commit: str | None = None
    _answered_at: float = 0.0
    _sent_at: float = 0.0
    _unanswered_since: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether to send a commit; a commit without an answer is sent again after a session."""
        pause = (
            self.session_seconds if self.commit is not None else self.session_seconds / _RENEWALS_PER_SESSION
        )
        return now >= max(self._answered_at, self._sent_at) + pause

    def is_overdue(self, now: float) -> bool:
        """Return whether a commit has had no answer for a session timeout."""
        return self._unanswered_since is not None and now - self._unanswered_since > self.session_seconds

    def record_commit(self, commit: str, now: float) -> None:
        """Record that the commit with this metadata was sent."""
        self.commit, self._sent_at = commit, now
        if self._unanswered_since is None:
            self._unanswered_since = now

    def record_answer(self, now: float) -> None:
        """Record that a broker has accepted a commit of the term."""
        self.commit, self._answered_at, self._unanswered_since = None, now, None

    def forget_commit(self) -> None:
        """Forget the commit: a broker or the client refused it, or its answer will not be read."""
        self.commit = None


class LeadershipStatus(Enum):
    """The status of a leader in the cluster. UNKNOWN: the cluster did not answer in time."""

    CONFIRMED = "confirmed"
    DEPOSED = "deposed"
    UNKNOWN = "unknown"


class KafkaLeadership:
    """The membership of one agent in the election (`ports.Leadership`); used by one thread.

    Only `status` and `close` wait: `poll` sends requests in one call and reads their answers in later ones.

    Args:
        journal_term: Returns the highest term in the journal, 0 if there is none, or raises `ProblemsError`.
            It is called in a thread of its own, when no term is committed.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        client_id: str,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        journal_term: Callable[[], int] = lambda: 0,
    ) -> None:
        self._connection = connection
        self._journal_term = journal_term
        self._client_id = client_id
        self._session_timeout_ms = session_timeout_ms
        self._topic = topic
        self._admin: AdminClient | None = None
        self._creation: Future[None] | None = None
        self._consumer: Consumer | None = None
        self._is_assigned = False
        self._stored_term: Future[tuple[int | None, int]] | None = None
        self._claim: tuple[int, str] | None = None
        self._commits = count()
        self._answers: dict[str, KafkaError | None] = {}
        self._term: int | None = None
        self._renewal = Renewal(session_timeout_ms / 1_000)
        self._not_before = 0.0
        self.error = ""
        """The last error of the cluster that keeps this agent out of the election; empty if there is none."""

    def poll(self) -> int | None:
        """See `ports.Leadership.poll`."""
        try:
            if self._consumer is not None:
                self._poll_consumer(self._consumer)
                self._read_renewal()
            if time.monotonic() >= self._not_before:
                self._take_next_step()
        except KafkaException as error:
            self._handle_error(error.args[0])
        if self._term is not None and self._renewal.is_overdue(time.monotonic()):
            self._term = None  # until brokers answer: another agent may have been elected
        return self._term

    def confirm(self, term: int) -> bool:
        """See `ports.Leadership.confirm`."""
        return self.status(term) is LeadershipStatus.CONFIRMED

    def status(self, term: int) -> LeadershipStatus:
        """Return whether this agent leads in `term`; waits a few seconds at most."""
        consumer = self._consumer
        if consumer is None or term != self._term:
            return LeadershipStatus.DEPOSED
        try:
            return self._commit_and_wait(consumer, term)
        except KafkaException as error:
            self._handle_error(error.args[0])
            if error.args[0].code() not in _DEPOSED:
                return LeadershipStatus.UNKNOWN
            self._term = None
            return LeadershipStatus.DEPOSED

    def close(self) -> None:
        """See `ports.Leadership.close`; a cluster that cannot be reached waits for the session timeout."""
        consumer, self._consumer, self._admin, self._term = self._consumer, None, None, None
        self._not_before = float("inf")
        if consumer is not None:
            closing = Thread(target=consumer.close, name="leadership-close", daemon=True)
            closing.start()
            closing.join(_CLOSE_SECONDS)

    def _take_next_step(self) -> None:
        """Take the next step towards a term, if there is one."""
        if self._consumer is None:
            self._join_group()
        elif self._is_assigned and self._term is None:
            self._begin_term(self._consumer)
        elif self._term is not None:
            self._renew_if_due(self._consumer, self._term)

    def _join_group(self) -> None:
        """Join the consumer group once the topic exists."""
        if self._creation is None:
            if self._admin is None:
                self._admin = AdminClient(client_settings(self._connection, self._client_id))
            self._creation = begin_creation(self._admin, self._topic)
        elif self._creation.done():
            creation, self._creation = self._creation, None
            if is_created(self._topic, creation):
                self._admin, self._consumer = None, self._new_member()
                if creation.exception() is not None:  # the topic existed
                    in_background(partial(protect_records, self._connection, self._topic, self._client_id))

    def _new_member(self) -> Consumer:
        consumer = Consumer(
            {
                **client_settings(self._connection, self._client_id),
                "group.id": self._topic,
                # The leader stays leader when others join and leave.
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": self._session_timeout_ms,
                "heartbeat.interval.ms": self._session_timeout_ms // 5,
                "max.poll.interval.ms": max(_LONGEST_ITERATION_MS, self._session_timeout_ms),
                "socket.timeout.ms": min(self._session_timeout_ms, _LONGEST_SOCKET_MS),
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "on_commit": self._on_commit,
            }
        )
        consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )
        return consumer

    def _poll_consumer(self, consumer: Consumer, seconds: float = 0) -> None:
        """Let librdkafka call the callbacks; the partition is paused, so no records arrive."""
        if (message := consumer.poll(seconds)) is not None and (error := message.error()) is not None:
            self._handle_error(error)

    def _on_assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        consumer.pause(list(partitions))
        self.error = ""
        self._is_assigned = self._is_assigned or _has_partition(partitions)

    def _on_revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if _has_partition(partitions):
            self._is_assigned, self._stored_term, self._claim, self._term = False, None, None, None
        consumer.incremental_unassign(list(partitions))

    def _begin_term(self, consumer: Consumer) -> None:
        """Begin a term after the partition was assigned: read the last term, write the next."""
        if self._claim is not None:
            term, commit = self._claim
            if commit in self._answers:
                self._claim = None
                self._raise_if_refused(commit)
                self._term = term
                self._renewal.record_answer(time.monotonic())
        elif self._stored_term is None:
            self._stored_term = in_background(self._last_term)
        elif self._stored_term.done():
            stored, self._stored_term = self._stored_term, None
            term = next_term(*stored.result(), int(time.time()))
            self._claim = term, self._commit(consumer, term)

    def _renew_if_due(self, consumer: Consumer, term: int) -> None:
        """Commit the term now and then: without answers for a session timeout, this agent is not the leader.

        Heartbeats do not show it: librdkafka (2.16) does not end the session while a request of the group is
        not answered.
        """
        if self._renewal.is_due(now := time.monotonic()):
            self._renewal.record_commit(self._commit(consumer, term), now)

    def _read_renewal(self) -> None:
        """Read the answer to the last renewal, if there is one."""
        commit = self._renewal.commit
        if commit is None or commit not in self._answers:
            return
        error = self._answers.pop(commit)
        if error is None:
            self._renewal.record_answer(time.monotonic())
            self.error = ""
            return
        self._renewal.forget_commit()
        if error.code() in _DEPOSED:
            self._term = None

    def _last_term(self) -> tuple[int | None, int]:
        """Return the last term that was committed, and without one the highest term in the journal.

        Brokers delete the commits of a group that was empty for a week (offsets.retention.minutes).
        """
        committed = committed_term(self._last_metadata())
        if committed is not None:
            return committed, 0
        try:
            return None, self._journal_term()
        except ProblemsError as error:
            raise KafkaException(KafkaError(_TIMED_OUT, error.problems[0].summary)) from None

    def _last_metadata(self) -> str | None:
        """Return the metadata of the last commit, read by a client of its own because the request blocks.

        `AdminClient.list_consumer_group_offsets` cannot be used: librdkafka (2.16) crashes on an answer that
        says that the coordinator has moved or is not available yet.
        """
        reader = Consumer({**client_settings(self._connection, self._client_id), "group.id": self._topic})
        try:
            asked = [TopicPartition(self._topic, PARTITION)]
            [last] = reader.committed(asked, timeout=self._session_timeout_ms / 1_000)
        finally:
            reader.close()
        if last.error is not None:
            raise KafkaException(last.error)
        metadata: str | None = last.metadata
        return metadata

    def _commit_and_wait(self, consumer: Consumer, term: int) -> LeadershipStatus:
        """Commit the term and wait for the answer."""
        deadline = time.monotonic() + _CONFIRM_SECONDS
        self._renewal.forget_commit()
        commit = self._commit(consumer, term)
        while commit not in self._answers:
            if time.monotonic() > deadline:
                return LeadershipStatus.UNKNOWN
            self._poll_consumer(consumer, _WAIT_SECONDS)
        self._raise_if_refused(commit)
        self._renewal.record_answer(time.monotonic())
        return LeadershipStatus.CONFIRMED if self._term == term else LeadershipStatus.DEPOSED

    def _raise_if_refused(self, commit: str) -> None:
        """Raise `KafkaException` if the answer to this commit was an error."""
        if (error := self._answers.pop(commit)) is not None:
            raise KafkaException(error)

    def _commit(self, consumer: Consumer, term: int) -> str:
        """Send a commit of the term as a member of the current generation and return its metadata."""
        self._answers.clear()  # of commits that timed out
        metadata = f"{_TERM}{term} {next(self._commits)}"
        partition = TopicPartition(self._topic, PARTITION, 0, metadata=metadata)
        consumer.commit(offsets=[partition], asynchronous=True)
        return metadata

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            if partition.metadata is not None:
                self._answers[partition.metadata] = error or partition.error

    def _handle_error(self, error: KafkaError) -> None:
        """Retry a little later, and log the error if it is new."""
        self._not_before = time.monotonic() + _PAUSE_SECONDS
        if (text := f"{error.name()}: {error.str()}") != self.error:
            self.error = text
            _log.warning("election failed, retrying", topic=self._topic, reason=text)


def _has_partition(partitions: Sequence[TopicPartition]) -> bool:
    return any(partition.partition == PARTITION for partition in partitions)


def committed_term(metadata: str | None) -> int | None:
    """Return the term in the metadata of a commit; None if there is none."""
    number = (metadata or "").removeprefix(_TERM).partition(" ")[0]
    return int(number) if number.isascii() and number.isdigit() else None


def next_term(committed: int | None, journal_term: int, seconds: int) -> int:
    """Return the term after the committed one; without one, the time in `seconds` since the epoch.

    A term that starts at the present time is higher than those before, because there are fewer elections than
    seconds. This agent's clock may be behind the clock of an earlier leader, so it also follows
    `journal_term`: readers of the journal skip the lines of a term that is lower than an earlier one.
    """
    return max(seconds, journal_term + 1) if committed is None else committed + 1
