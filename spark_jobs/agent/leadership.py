"""Which one of several agents expands: the one that is assigned the only partition of a topic.

The group coordinator is the one authority. It gives the partition to one member at a time, takes it away when
the member's heartbeats stay away for `session_timeout_ms`, and accepts an offset commit only from a member of
the present generation. That commit is the fence: `confirm` makes one, right before something is changed. It
also keeps the terms: its metadata holds the term, each new leader counts on from there, and none can count
whose generation has passed.

An agent that is paused between `confirm` and its request can still send the request much later. That cannot
over-partition either: `createPartitions` names an absolute count, which the controller refuses unless it is
higher than what there is, and the count was asked for by source topics, which never shrink. All that a late
request can do is what the new leader does anyway. (A source that is deleted and created again with fewer
partitions just then is the exception; the next reading finds the topic over-partitioned and says so.)
"""

import time
from collections.abc import Sequence
from enum import Enum
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.observe import Connection
from infra.observe.pending_requests import in_background
from spark_jobs.agent.coordination_topic import PARTITION, begin_creation, client_settings, is_there

if TYPE_CHECKING:
    from concurrent.futures import Future

DEFAULT_SESSION_TIMEOUT_MS = 10_000
"""Without heartbeats for so long an agent leads no more. Brokers want 6 s at least (their
`group.min.session.timeout.ms`)."""
_LONGEST_TURN_MS = 120_000  # of the loop: one that hangs gives the leadership up
_CONFIRM_SECONDS = 5.0
_WAIT_SECONDS = 0.01
_CLOSE_SECONDS = 5.0
_PAUSE_SECONDS = 2.0
_TERM = "term "
_DEPOSED = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID)

_log = structlog.get_logger(__name__)


class Standing(Enum):
    """What the cluster says of a leader. UNKNOWN: it did not answer in time."""

    CONFIRMED = "confirmed"
    DEPOSED = "deposed"
    UNKNOWN = "unknown"


class KafkaLeadership:
    """One agent's part in the election (`ports.Leadership`); used by one thread, never by two at once.

    Nothing waits but `standing` and `close`: requests are sent in one call of `poll`, answers are looked for
    in later ones.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        client_id: str,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
    ) -> None:
        self._connection = connection
        self._client_id = client_id
        self._session_timeout_ms = session_timeout_ms
        self._topic = topic
        self._admin: AdminClient | None = None
        self._creation: Future[None] | None = None
        self._consumer: Consumer | None = None
        self._is_assigned = False
        self._stored: Future[str | None] | None = None
        self._claim: tuple[int, str] | None = None
        self._commits = count()
        self._answers: dict[str, KafkaError | None] = {}
        self._term: int | None = None
        self._not_before = 0.0
        self.trouble = ""
        """Why this agent cannot stand for election, as the cluster told last; empty when it can."""

    def poll(self) -> int | None:
        """See `ports.Leadership.poll`."""
        try:
            if self._consumer is not None:
                self._serve(self._consumer)
            if time.monotonic() >= self._not_before:
                self._go_on()
        except KafkaException as error:
            self._suffer(error.args[0])
        return self._term

    def confirm(self, term: int) -> bool:
        """See `ports.Leadership.confirm`."""
        return self.standing(term) is Standing.CONFIRMED

    def standing(self, term: int) -> Standing:
        """Ask the cluster, for a few seconds at most."""
        consumer = self._consumer
        if consumer is None or term != self._term:
            return Standing.DEPOSED
        try:
            return self._asked(consumer, term)
        except KafkaException as error:
            self._suffer(error.args[0])
            if error.args[0].code() not in _DEPOSED:
                return Standing.UNKNOWN
            self._term = None
            return Standing.DEPOSED

    def close(self) -> None:
        """See `ports.Leadership.close`; an unreachable cluster finds out by the session time-out."""
        consumer, self._consumer, self._admin, self._term = self._consumer, None, None, None
        self._not_before = float("inf")
        if consumer is not None:
            closing = Thread(target=consumer.close, name="leadership-close", daemon=True)
            closing.start()
            closing.join(_CLOSE_SECONDS)

    def _go_on(self) -> None:
        """Take the next step towards a term, if there is one to take."""
        if self._consumer is None:
            self._join()
        elif self._is_assigned and self._term is None:
            self._count_on(self._consumer)

    def _join(self) -> None:
        """Stand for election once the topic is there."""
        if self._creation is None:
            if self._admin is None:
                self._admin = AdminClient(client_settings(self._connection, self._client_id))
            self._creation = begin_creation(self._admin, self._topic)
        elif self._creation.done():
            creation, self._creation = self._creation, None
            if is_there(self._topic, creation):
                self._admin, self._consumer = None, self._candidate()

    def _candidate(self) -> Consumer:
        consumer = Consumer(
            {
                **client_settings(self._connection, self._client_id),
                "group.id": self._topic,
                # Who leads goes on leading when others come and go.
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": self._session_timeout_ms,
                "heartbeat.interval.ms": self._session_timeout_ms // 5,
                "max.poll.interval.ms": max(_LONGEST_TURN_MS, self._session_timeout_ms),
                "socket.timeout.ms": self._session_timeout_ms,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "on_commit": self._committed,
            }
        )
        consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        return consumer

    def _serve(self, consumer: Consumer, seconds: float = 0) -> None:
        """Let the client library call back; the partition is paused, so records never come."""
        if (told := consumer.poll(seconds)) is not None and (error := told.error()) is not None:
            self._suffer(error)

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        consumer.pause(list(partitions))
        self.trouble = ""
        self._is_assigned = self._is_assigned or _has_the_one(partitions)

    def _revoked(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if _has_the_one(partitions):
            self._is_assigned, self._stored, self._claim, self._term = False, None, None, None
        consumer.incremental_unassign(list(partitions))

    def _count_on(self, consumer: Consumer) -> None:
        """Begin a term now that the partition has come to this agent: read the last one, write the next."""
        if self._claim is not None:
            term, commit = self._claim
            if commit in self._answers:
                self._claim = None
                self._check(commit)
                self._term = term
        elif self._stored is None:
            self._stored = in_background(self._last_term)
        elif self._stored.done():
            stored, self._stored = self._stored, None
            term = next_term(stored.result(), int(time.time()))
            self._claim = term, self._commit(consumer, term)

    def _last_term(self) -> str | None:
        """Return what the last term's commit says, asked by a client of its own: this waits for the answer.

        Not by `AdminClient.list_consumer_group_offsets`: librdkafka (2.16) dies of an answer that tells of a
        coordinator that has moved or is not up yet.
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

    def _asked(self, consumer: Consumer, term: int) -> Standing:
        """Commit and wait for the answer, unless the partition is taken away meanwhile."""
        deadline = time.monotonic() + _CONFIRM_SECONDS
        commit = self._commit(consumer, term)
        while commit not in self._answers:
            if time.monotonic() > deadline:
                return Standing.UNKNOWN
            self._serve(consumer, _WAIT_SECONDS)
        self._check(commit)
        return Standing.CONFIRMED if self._term == term else Standing.DEPOSED

    def _check(self, commit: str) -> None:
        """Raise `KafkaException` if this commit, which was answered, was refused."""
        if (error := self._answers.pop(commit)) is not None:
            raise KafkaException(error)

    def _commit(self, consumer: Consumer, term: int) -> str:
        """Begin to write the term as a member of the present generation; return the commit's name."""
        self._answers.clear()  # of commits that nobody waits for any more
        metadata = f"{_TERM}{term} {next(self._commits)}"
        partition = TopicPartition(self._topic, PARTITION, 0, metadata=metadata)
        consumer.commit(offsets=[partition], asynchronous=True)
        return metadata

    def _committed(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            if partition.metadata is not None:
                self._answers[partition.metadata] = error or partition.error

    def _suffer(self, error: KafkaError) -> None:
        """Go on, a little later, and tell what is new."""
        self._not_before = time.monotonic() + _PAUSE_SECONDS
        if (told := f"{error.name()}: {error.str()}") != self.trouble:
            self.trouble = told
            _log.warning("election troubled", topic=self._topic, reason=told)


def _has_the_one(partitions: Sequence[TopicPartition]) -> bool:
    return any(partition.partition == PARTITION for partition in partitions)


def next_term(stored: str | None, seconds: int) -> int:
    """Return the term after the one that is stored; the first one is `seconds` since the epoch.

    The brokers forget commits of a group that was empty for a week (offsets.retention.minutes). Counting from
    the time then is still counting on: there are fewer elections than seconds.
    """
    number = (stored or "").removeprefix(_TERM).partition(" ")[0]
    return int(number) + 1 if number.isascii() and number.isdigit() else seconds
