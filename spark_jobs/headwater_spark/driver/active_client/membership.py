"""The part of a client in the choice of the active one: it waits, becomes active, renews its record."""

import hashlib
import os
import socket
from collections.abc import Callable, Collection
from pathlib import Path
from queue import SimpleQueue
from secrets import token_hex
from threading import Event, Lock, Thread

import attrs
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater.model.client_record import ClientRecord, client_group
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.active_client.decide import ActiveTerm, Candidate, Role, client_replaced
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.worker import clients
from headwater_spark.worker.state_proof import PROOF_SECONDS, boot_seconds, read_records

_log = structlog.get_logger(__name__)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_POLL_SECONDS = 1.0
_SHORTEST_POLL_SECONDS = 0.05
_END_SECONDS = 0.1
_FIRST_RENEWAL_SECONDS = 0.5
"""Then a client that became active at the same moment has written its record."""
_RENEWAL_SECONDS = 2.0
_READ_SECONDS = 2.0
"""Short: after a request without an answer, enough time must be left before the record expires."""
_WRITE_SECONDS = 10.0
_END_OFFSET_SECONDS = 1.0
_DENIED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


@attrs.frozen
class LockedFile:
    """A file, by the numbers of its device and inode. While it is open, no other file has the same numbers.

    Read them from the open file: its path may name another file, for example if the folder was deleted and
    created again.
    """

    device: int
    inode: int

    @classmethod
    def from_descriptor(cls, descriptor: int) -> "LockedFile":
        """Return the identity of an open file."""
        found = os.fstat(descriptor)
        return cls(found.st_dev, found.st_ino)

    def lock_id(self) -> str:
        """Return the id of the file on this machine, until its next start; empty if it is not known.

        Without the id of the start of the machine it is not known: after a start, or on another machine with
        the same host name, another file may have the same numbers.
        """
        try:
            boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
        if not boot_id:
            return ""
        text = f"{boot_id}\n{socket.gethostname()}\n{self.device}\n{self.inode}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class ActiveClient:
    """The membership of one client. `acquire` it, `run` it in a thread of its own, `close` it.

    `start_observing` before Spark starts, so that the time of the start counts.

    Args:
        client: its client id.
        lock: the file of the checkpoint that this process has locked; None: it has locked none.
        is_fenced: as in `Candidate`.
    """

    def __init__(
        self,
        connection: Connection,
        application: str,
        client: str,
        lock: LockedFile | None,
        *,
        is_fenced: bool = False,
    ) -> None:
        self.process = token_hex(8)
        self.topic = ""
        """The topic whose partition 0 has the record; empty: no client is chosen."""
        self.waits_for = ""
        """The active client that this one waits for; empty: it does not wait."""
        self.has_waited = False
        self.spark = ""
        """As in `ClientRecord`; set it before `acquire`."""
        self.lost_spark: SimpleQueue[str] = SimpleQueue()
        """The Spark applications of clients that this one has replaced; an empty text follows the last."""
        self._application = application
        self._name = f"{client} on {socket.gethostname()}"
        self._candidate = Candidate("" if lock is None else lock.lock_id(), is_fenced)
        self._connection = connection
        self._observer: Thread | None = None
        self._is_observed = Event()
        """Set when the observer shall end."""
        self._ending = Lock()
        self._has_observer = self._is_closed = False
        """Changed with `_ending`: whoever ends last, the observer or `close`, closes the consumer."""
        self._consumer: Consumer | None = None
        self._offset = 0
        """The end offset of the partition, when it was known last."""
        self._term: ActiveTerm | None = None
        self._replaced: Problem | None = None
        self._lock = Lock()
        """Held while the record is read and written."""

    @property
    def proved_at(self) -> float:
        """When this client was active for certain, as `boot_seconds`; 0 = not known yet."""
        term = self._term
        return 0.0 if term is None or term.proved_at is None else term.proved_at

    @property
    def may_claim(self) -> bool:
        """Whether no other client was active when the record was read last."""
        return self._candidate.may_claim

    def start_observing(self, topics: Collection[str]) -> None:
        """Read the record in a thread until `acquire` or `close` is called; `topics` as in `acquire`."""

        def observe() -> None:
            while not self._is_observed.is_set():
                try:
                    self._observe(topics)
                except KafkaException as error:  # `acquire` reports it
                    _log.debug("record of the active client not read", reason=failure_reason(error))
                self._is_observed.wait(_POLL_SECONDS)
            with self._ending:
                self._has_observer = False
            if self._is_closed:
                self._close_consumer()

        if topics:
            self._has_observer = True
            self._observer = Thread(target=observe, name=f"{self._application}-observer", daemon=True)
            self._observer.start()

    def acquire(self, topics: Collection[str], stopping: Event) -> bool:
        """Wait until this client is active; return False if `stopping` was set before. Call it once.

        `topics` are the source topics, the same for all clients. Without the permission to use the group,
        the client is active at once, and others are not noticed. `lost_spark` is filled meanwhile.

        Raises:
            KafkaException: The record cannot be read or written.
        """
        try:
            return not topics or self._acquire(topics, stopping)
        finally:
            self.lost_spark.put("")

    def _acquire(self, topics: Collection[str], stopping: Event) -> bool:
        self._await_observer(stopping)
        while not stopping.is_set():
            try:
                self._observe(topics)
                if self.may_claim and self._become_active(self._candidate, stopping):
                    return True
            except KafkaException as error:
                if error.args[0].code() in _DENIED:
                    self._continue_alone(failure_reason(error))
                    return True
                if not self.has_waited:
                    raise
                # Brokers do not answer: the active client has the same problem.
                _log.debug("record of the active client not read", reason=failure_reason(error))
            self._wait(self._candidate, stopping)
        return False

    def check(self) -> None:
        """Raise `ProblemsError` if another client is active; read that if the last proof is old."""
        if self._replaced is not None:
            raise ProblemsError([self._replaced])
        if boot_seconds() - self.proved_at > PROOF_SECONDS:
            self._renew()

    def run(self, on_problem: Callable[[Problem], None], stopping: Event) -> None:
        """Renew the record until `stopping` is set; report it if another client has become active."""
        seconds = _FIRST_RENEWAL_SECONDS
        while not stopping.wait(seconds):
            seconds = _RENEWAL_SECONDS
            if self._term is None:
                continue
            try:
                self._renew()
            except ProblemsError as error:
                on_problem(error.problems[0])
            except KafkaException as error:  # brokers do not answer: the workers read the record themselves
                _log.debug("record of the active client not renewed", reason=failure_reason(error))
                seconds = _FIRST_RENEWAL_SECONDS

    def close(self, *, records_end: bool = True) -> None:
        """Let another client become active at once. Call it when nothing processes records any more.

        Without `records_end`, send no request: no broker answers. Do not wait for a request of the observer,
        which may take seconds.
        """
        self._is_observed.set()
        with self._ending:
            self._is_closed = True
            if self._has_observer:  # so `acquire` was not called, and there is no record to end
                return
        self._close_consumer(records_end=records_end)

    def _close_consumer(self, *, records_end: bool = True) -> None:
        """Close the consumer; record the end if this client is the active one."""
        with self._lock:
            consumer, self._consumer = self._consumer, None
            term, self._term = self._term, None
            if consumer is None:
                return
            try:
                if term is not None and records_end and term.role(self._read_record(consumer)) is Role.ACTIVE:
                    self._write(consumer, term.own.ended())
            except KafkaException as error:
                _log.debug("end of the active client not recorded", reason=failure_reason(error))
            consumer.close()

    def _observe(self, topics: Collection[str]) -> None:
        self._candidate = self._candidate.observed(self._read(topics), boot_seconds())

    def _await_observer(self, stopping: Event) -> None:
        """Wait until the observer has ended, or `stopping` is set: its request may take seconds."""
        self._is_observed.set()
        while self._observer is not None and self._observer.is_alive() and not stopping.is_set():
            self._observer.join(_END_SECONDS)

    def _become_active(self, candidate: Candidate, stopping: Event) -> bool:
        """Become active; return False if another client has done so meanwhile, or `stopping` is set."""
        own = candidate.claim(self.process, self._name, self.spark)
        with self._lock:
            if self._consumer is None:
                return False
            self._write(self._consumer, own)
        self._term = candidate.begin_term(own, boot_seconds())
        if candidate.record is not None and not candidate.record.has_ended and candidate.record.spark:
            self.lost_spark.put(candidate.record.spark)
        if candidate.record is not None and not candidate.has_no_rival:
            _log.warning(
                "client takes over: the active one is silent",
                application=self._application,
                client=self._name,
                replaced=candidate.record.name,
                seconds=round(candidate.seconds),
            )
            if not self._wait_for_workers(stopping):
                return False
        self.waits_for = ""
        return True

    def _wait_for_workers(self, stopping: Event) -> bool:
        """Wait until no worker trusts the client that was silent; return False if that one continues."""
        seconds = _FIRST_RENEWAL_SECONDS
        while not self.proved_at:
            if stopping.wait(seconds):
                return False
            try:
                self._renew()
            except ProblemsError:
                self._replaced = None
                return False
            except KafkaException as error:
                _log.debug("record of the active client not renewed", reason=failure_reason(error))
            left = 0.0 if self._term is None else self._term.seconds_left(boot_seconds())
            seconds = _pause_before_read(left, _RENEWAL_SECONDS) or _FIRST_RENEWAL_SECONDS
        return True

    def _wait(self, candidate: Candidate, stopping: Event) -> None:
        self.has_waited = True
        active = candidate.record.name if candidate.record is not None else ""
        if self.waits_for != active:
            self.waits_for = active
            _log.info(
                "waiting: another client is active",
                application=self._application,
                client=self._name,
                active=active,
            )
        stopping.wait(_pause_before_read(candidate.seconds_left, _POLL_SECONDS) or _POLL_SECONDS)

    def _continue_alone(self, reason: str) -> None:
        _log.warning(
            "other clients are not noticed: start no second one",
            application=self._application,
            required=f"permission Read on group {client_group(self._application)}",
            reason=reason,
        )
        self.topic = ""

    def _renew(self) -> None:
        """Read the record and renew it; raise `ProblemsError` if another client is active."""
        with self._lock:
            term, consumer = self._term, self._consumer
            if term is None or consumer is None:
                return
            read_at, found = boot_seconds(), self._read_record(consumer)
            if term.role(found) is Role.REPLACED and found is not None:
                self._term = None
                self._replaced = client_replaced(self._application, self._name, found.name)
                raise ProblemsError([self._replaced])
            self._write(consumer, term.own.renewed())
            self._term = term.renewed(found, read_at, boot_seconds())

    def _read_record(self, consumer: Consumer) -> ClientRecord | None:
        return read_records(consumer, [self.topic], _READ_SECONDS).get(self.topic)

    def _read(self, topics: Collection[str]) -> ClientRecord | None:
        """Return the record of the last term, and use its topic; with a pattern, topics are added."""
        with self._lock:
            if self._consumer is None:
                self._consumer = clients.create_consumer(self._connection, client_group(self._application))
            found = read_records(self._consumer, topics)
        internal = f"{self._application}-"
        first = min(topics, key=lambda topic: (topic.startswith(internal), topic))
        self.topic = max(found, key=lambda topic: found[topic].term, default=first)
        return found.get(self.topic)

    def _write(self, consumer: Consumer, record: ClientRecord) -> None:
        """Write the record with the end offset, so that monitoring sees no lag of its group.

        Raises:
            KafkaException: No broker has stored it in time; a late request may still store it.
        """
        self._offset = _end_offset(consumer, self.topic) or self._offset
        requested = KafkaTopicPartition(self.topic, 0, self._offset, record.encode())
        clients.commit_offsets(consumer, [requested], _WRITE_SECONDS, "write the record of the active client")


def _pause_before_read(left: float, most: float) -> float:
    """Return the pause before the next read, which decides in `left` seconds; 0 if it may decide now."""
    return min(most, max(_SHORTEST_POLL_SECONDS, left)) if left > 0 else 0.0


def _end_offset(consumer: Consumer, topic: str) -> int | None:
    """Return the end offset of partition 0; None if its leader does not answer at once."""
    try:
        (found,) = consumer.offsets_for_times(
            [KafkaTopicPartition(topic, 0, clients.LATEST)], _END_OFFSET_SECONDS
        )
    except KafkaException:
        return None
    return None if found.error is not None or found.offset < 0 else int(found.offset)
