"""Which client is active: one at a time, whatever clients are stopped and continue."""

from collections.abc import Callable
from itertools import permutations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.client_record import ClientRecord, client_group, decode_record, is_client_group
from headwater.model.cluster import GroupFacts, GroupType
from headwater.planner.evidence.names import exclusion_text, find_candidates
from headwater_spark.driver.active_client.decide import (
    EXPIRY_SECONDS,
    SETTLE_SECONDS,
    ActiveTerm,
    Candidate,
    Role,
)
from headwater_spark.worker.state_proof import PROOF_SECONDS

OTHER = ClientRecord(term=3, process="other", name="a on one", lock_id="there")
HERE = Candidate("here")


def _after(candidate: Candidate, *reads: tuple[float, ClientRecord | None]) -> Candidate:
    for now, record in reads:
        candidate = candidate.observed(record, now)
    return candidate


def test_record_is_read_as_it_was_written() -> None:
    record = OTHER.renewed().ended()
    assert decode_record(record.encode()) == record
    assert (record.renewals, record.has_ended) == (1, True)
    for text in ("", "AgAAAZ", "[]", "{}", "7"):
        assert decode_record(text) is None, text


def test_a_client_of_another_version_is_a_client() -> None:
    assert decode_record('{"term": 1, "process": "p", "more": 2}') == ClientRecord(term=1, process="p")


@pytest.mark.parametrize(
    ("found", "may_claim"),
    [
        (None, True),
        (OTHER.ended(), True),
        (attrs.evolve(OTHER, lock_id="here"), True),
        (OTHER, False),
        (attrs.evolve(OTHER, lock_id=""), False),
    ],
)
def test_a_client_becomes_active_at_once_if_no_other_one_can_be(
    found: ClientRecord | None, *, may_claim: bool
) -> None:
    assert _after(HERE, (100.0, found)).may_claim is may_claim


def test_checkpoints_without_a_lock_are_not_the_same() -> None:
    assert not _after(Candidate(""), (100.0, attrs.evolve(OTHER, lock_id=""))).may_claim


def test_a_client_waits_until_the_record_has_not_changed_for_long() -> None:
    waiting = _after(HERE, *((float(now), OTHER) for now in range(int(EXPIRY_SECONDS))))
    assert not waiting.may_claim
    assert waiting.observed(OTHER, EXPIRY_SECONDS).may_claim
    assert not waiting.observed(OTHER.renewed(), EXPIRY_SECONDS).may_claim


def test_a_client_knows_when_the_next_read_may_let_it_claim() -> None:
    assert HERE.seconds_left == EXPIRY_SECONDS
    waiting = _after(HERE, (0.0, OTHER), (1.0, OTHER))
    assert waiting.seconds_left == EXPIRY_SECONDS - 1.0
    assert waiting.observed(OTHER.renewed(), 2.0).seconds_left == EXPIRY_SECONDS
    assert waiting.observed(OTHER.ended(), 2.0).seconds_left == 0.0
    silent = _after(HERE, *((float(now), OTHER) for now in range(int(EXPIRY_SECONDS) + 1)))
    assert silent.seconds_left == 0.0


def test_a_client_knows_when_the_next_read_may_prove_its_term() -> None:
    assert ActiveTerm(OTHER).seconds_left(100.0) == 0.0
    doubtful = ActiveTerm(OTHER, doubted_at=100.0)
    assert doubtful.seconds_left(102.0) == SETTLE_SECONDS - 2.0
    assert doubtful.seconds_left(101.0 + SETTLE_SECONDS) == 0.0


def test_time_without_answers_of_brokers_does_not_count() -> None:
    """The active client could not renew its record either."""
    assert not _after(HERE, (0.0, OTHER), (1_000.0, OTHER)).may_claim


def test_each_client_begins_a_later_term() -> None:
    assert HERE.claim("p", "b on two") == ClientRecord(term=1, process="p", name="b on two", lock_id="here")
    assert _after(HERE, (0.0, OTHER.ended())).claim("p", "b on two").term == OTHER.term + 1


@pytest.mark.parametrize(
    ("found", "role"),
    [
        (attrs.evolve(OTHER, renewals=7), Role.ACTIVE),
        (None, Role.UNRECORDED),
        (ClientRecord(term=2, process="late"), Role.UNRECORDED),
        (ClientRecord(term=3, process="same time"), Role.REPLACED),
        (ClientRecord(term=4, process="later"), Role.REPLACED),
    ],
)
def test_the_record_says_who_is_active(found: ClientRecord | None, role: Role) -> None:
    assert ActiveTerm(OTHER).role(found) is role


def test_a_claim_without_a_rival_is_proved_by_the_first_read() -> None:
    candidate = _after(HERE, (100.0, None))
    own = candidate.claim("p", "")
    term = candidate.begin_term(own, 100.1)
    assert term.proved_at is None
    assert term.renewed(own, 100.6, 100.7).proved_at == 100.6


@pytest.mark.parametrize("written_at", [100.1, 101.0])
def test_a_doubtful_claim_is_proved_after_the_others_are_not_trusted(written_at: float) -> None:
    silent = _after(
        HERE, *((100.0 - EXPIRY_SECONDS + each, OTHER) for each in range(int(EXPIRY_SECONDS) + 1))
    )
    candidate = silent if written_at == 100.1 else _after(HERE, (100.0, None))
    own = candidate.claim("p", "")
    term = candidate.begin_term(own, written_at)
    for second in range(int(SETTLE_SECONDS)):
        term = term.renewed(term.own, written_at + second, written_at + second + 0.1)
        assert term.proved_at is None
    last = written_at + SETTLE_SECONDS
    assert term.renewed(term.own, last, last + 0.1).proved_at is not None
    assert SETTLE_SECONDS > PROOF_SECONDS


def test_a_client_that_brokers_fence_is_proved_by_the_first_read() -> None:
    silent = _after(
        Candidate("here", is_fenced=True), *((float(each), OTHER) for each in range(int(EXPIRY_SECONDS) + 1))
    )
    term = silent.begin_term(silent.claim("p", ""), EXPIRY_SECONDS + 2)
    read_at = EXPIRY_SECONDS + 3
    assert term.renewed(term.own, read_at, read_at + 2).proved_at == read_at
    assert term.role(attrs.evolve(term.own, process="other")) is Role.REPLACED


@pytest.mark.parametrize("found", [None, ClientRecord(term=1, process="late")])
def test_a_lost_record_has_to_be_proved_again(found: ClientRecord | None) -> None:
    term = ActiveTerm(OTHER, proved_at=100.0).renewed(found, 102.0, 102.1)
    assert term.own.renewals == 1
    assert term.proved_at == 100.0
    assert term.renewed(term.own, 104.0, 104.1).proved_at == 100.0
    assert (
        term.renewed(term.own, 102.2 + SETTLE_SECONDS, 102.3 + SETTLE_SECONDS).proved_at
        == 102.2 + SETTLE_SECONDS
    )


@attrs.define
class _Client:
    """A client in the simulation. Each of its steps ends with a request to the broker."""

    name: int
    candidate: Candidate = attrs.field(factory=lambda: Candidate(""))
    term: ActiveTerm | None = None
    write: Callable[[float], ClientRecord] | None = None
    """The write that follows the last read; returns the record that is stored."""
    claims: int = 0

    def read(self, record: ClientRecord | None, now: float) -> None:
        if (term := self.term) is not None and term.role(record) is Role.REPLACED:
            self.term, self.candidate = None, Candidate("")
        if (term := self.term) is not None:
            self.write = lambda at: self._renew(term, record, now, at)
            return
        self.candidate = self.candidate.observed(record, now)
        if self.candidate.may_claim:
            self.write = self._claim

    def _renew(
        self, term: ActiveTerm, record: ClientRecord | None, read_at: float, written_at: float
    ) -> ClientRecord:
        self.term = term.renewed(record, read_at, written_at)
        return self.term.own

    def _claim(self, now: float) -> ClientRecord:
        self.claims += 1
        own = self.candidate.claim(f"{self.name}.{self.claims}", "")
        self.term = self.candidate.begin_term(own, now)
        return own

    def is_trusted(self, now: float) -> bool:
        """Return whether its workers write without a request: they may continue while it is stopped."""
        proved_at = None if self.term is None else self.term.proved_at
        return proved_at is not None and now - proved_at <= PROOF_SECONDS


_STOPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60), st.booleans()), max_size=12)
"""Stops of the clients: (client, seconds, between a read and its write)."""


@settings(max_examples=4 * settings().max_examples)
@given(_STOPS, st.sampled_from(list(permutations(range(3)))))
def test_workers_never_trust_two_clients(stops: list[tuple[int, int, bool]], order: tuple[int, ...]) -> None:
    """Clients are stopped and continue, also between a read and the write that follows it."""
    clients = [_Client(each) for each in range(3)]
    stored: ClientRecord | None = None
    stopped_until = dict.fromkeys(range(3), 0)
    pending = list(stops)
    trusted: set[int] = set()
    for now in range(1, 120 + 70 * len(stops)):
        if is_stop := bool(pending) and now % 60 == 0:
            client, seconds, _ = pending[0]
            stopped_until[client] = now + seconds
        running = [each for each in order if stopped_until[each] <= now]
        for each in running:
            if clients[each].write is None:
                clients[each].read(stored, float(now))
        if is_stop:
            client, seconds, is_between = pending.pop(0)
            if is_between:  # it has read, and does not write
                clients[client].read(stored, float(now))
        for each in running:
            write, clients[each].write = clients[each].write, None
            if write is not None:
                stored = write(now + 0.1)
        trusted = {each.name for each in clients if each.is_trusted(now)}
        assert len(trusted) <= 1, (now, trusted)
    assert trusted, "the clients run again, and none is active"


def test_the_group_of_the_record_is_not_an_application() -> None:
    group = GroupFacts(
        id=client_group("shop"), type=GroupType.CLASSIC, state="Empty", committed=frozenset({"orders"})
    )
    assert is_client_group(group.id)
    assert not is_client_group("shop")
    assert find_candidates({group.id: group}, ()) == {}
    assert "the record of the active client" in exclusion_text(group)
