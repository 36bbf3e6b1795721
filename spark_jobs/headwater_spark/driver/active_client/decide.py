"""When a client becomes active, and until when its workers may trust that it is.

    no record, or the last client has stopped       become active
    the last client had locked the same checkpoint  become active: the lock proves that it has died
    its record has not changed for EXPIRY_SECONDS   become active: it has died, hangs, or is cut off
    its record changes                              wait

A client reads and writes one after the other, so two of them may write without knowing of each other: a
client may be stopped between the two, or a request may be late. So a write proves nothing. A client has
proved that it is active when it reads its own record, and its last doubtful write was SETTLE_SECONDS before:
any other client would have written meanwhile, or its workers do not trust it any more (`PROOF_SECONDS`).

With `exactly_once_v2`, brokers fence the workers of a client that was replaced. So no write is doubtful.
"""

from enum import Enum

import attrs

from headwater.model.client_record import ClientRecord
from headwater.model.problems import Problem, ProblemCode

EXPIRY_SECONDS = 8.0
"""A record that has not changed for so long belongs to a client that has died, or is cut off."""
SETTLE_SECONDS = 6.0
"""Longer than workers trust a client without a new proof (`state_proof.PROOF_SECONDS`)."""
_SLOW_SECONDS = 0.4
"""A write is doubtful if it is so much later than the read: another client may have written meanwhile."""
_LONGEST_STEP_SECONDS = 1.5
"""More time between two reads is not counted: the brokers did not answer the active client either."""
_NEVER = float("-inf")


def client_replaced(application: str, name: str, by: str) -> Problem:
    """Return the problem that another client has become active; `name` and `by` are names of clients."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"Another client of {application} is active.",
        expected=f"{name} as the only active client",
        found=by,
        why=f"This client was silent for longer than {EXPIRY_SECONDS:g} s, so the other one continues from "
        "the committed offsets. Two active clients would compete for the tasks.",
        fix="Start this client again if it shall be the standby client: it waits until the other one ends.",
    )


@attrs.frozen
class Candidate:
    """A client that is not active, and what it has read; times are seconds of one clock."""

    lock_id: str
    """As in `ClientRecord`."""
    is_fenced: bool = False
    """Brokers fence the workers of a client that was replaced (`exactly_once_v2`)."""
    record: ClientRecord | None = None
    seconds: float = 0.0
    """How long the record has not changed."""
    read_at: float | None = None

    def observed(self, record: ClientRecord | None, now: float) -> "Candidate":
        """Return the candidate after it has read the record."""
        step = 0.0 if self.read_at is None else min(now - self.read_at, _LONGEST_STEP_SECONDS)
        seconds = self.seconds + step if record == self.record else 0.0
        return attrs.evolve(self, record=record, seconds=seconds, read_at=now)

    @property
    def may_claim(self) -> bool:
        """Whether no other client was active when the record was read; False before."""
        return self.read_at is not None and (self.has_no_rival or self.seconds >= EXPIRY_SECONDS)

    @property
    def has_no_rival(self) -> bool:
        """Whether it is certain that the last client processes nothing any more."""
        record = self.record
        return record is None or record.has_ended or (bool(self.lock_id) and record.lock_id == self.lock_id)

    @property
    def seconds_left(self) -> float:
        """How long the record has to stay as it is until this client may claim; 0 = it may."""
        return 0.0 if self.may_claim else EXPIRY_SECONDS - self.seconds

    def claim(self, process: str, name: str, spark: str = "") -> ClientRecord:
        """Return the record with which a process becomes active."""
        term = 1 if self.record is None else self.record.term + 1
        return ClientRecord(term=term, process=process, name=name, lock_id=self.lock_id, spark=spark)

    def begin_term(self, own: ClientRecord, written_at: float) -> "ActiveTerm":
        """Return the term that begins when the claim is written."""
        is_slow = self.read_at is None or written_at - self.read_at > _SLOW_SECONDS
        is_doubtful = not self.is_fenced and (is_slow or not self.has_no_rival)
        return ActiveTerm(own, self.is_fenced, written_at if is_doubtful else _NEVER)


class Role(Enum):
    """What a client is, by the record that it has read. UNRECORDED: active, but its record is lost."""

    ACTIVE = "active"
    UNRECORDED = "active, not recorded"
    REPLACED = "replaced"


@attrs.frozen
class ActiveTerm:
    """A term of an active client: its record, when a write was doubtful last, and its last proof."""

    own: ClientRecord
    is_fenced: bool = False
    """As in `Candidate`."""
    doubted_at: float = _NEVER
    proved_at: float | None = None

    def role(self, found: ClientRecord | None) -> Role:
        """Return the role; a record of an earlier term is a late request of a client that was replaced."""
        if found is not None and found.process == self.own.process:
            return Role.ACTIVE
        if found is None or found.term < self.own.term:
            return Role.UNRECORDED
        return Role.REPLACED

    def seconds_left(self, now: float) -> float:
        """Return after how long a read can prove the term, if no write is doubtful meanwhile; 0 = now."""
        return max(0.0, self.doubted_at + SETTLE_SECONDS - now)

    def renewed(self, found: ClientRecord | None, read_at: float, written_at: float) -> "ActiveTerm":
        """Return the term after the record `found` was read, and the renewed one was written."""
        is_own = self.role(found) is Role.ACTIVE
        is_proved = is_own and read_at - self.doubted_at >= SETTLE_SECONDS
        is_doubtful = not self.is_fenced and (not is_own or written_at - read_at > _SLOW_SECONDS)
        return attrs.evolve(
            self,
            own=self.own.renewed(),
            doubted_at=written_at if is_doubtful else self.doubted_at,
            proved_at=read_at if is_proved else self.proved_at,
        )
