"""The loop with fake ports: how it handles failures, time-outs and refused terms."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from headwater.agent.decide.values import AgentPolicy
from headwater.agent.documents import SwitchedDocuments
from headwater.agent.events import AttemptFailed, LeadershipGained, LeadershipLost, Notified
from headwater.agent.loop import Loop
from headwater.agent.ports import Callback, NoLongerLeaderError
from headwater.agent.state import OffsetTexts, Outcome, Phase, Shortfall, TopicResult
from headwater.model.expansions import ExpansionEntry, Stage, TopicCounts
from headwater.model.offset_metadata import OffsetMetadata
from headwater.model.problems import ProblemsError
from tests.agent.running import InMemory, Recorder
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, documents, set_up, unreachable

DOCUMENTS = documents(ORDERS)
SOURCES = {"orders": 4, "returns": 4}


@attrs.define
class FakePorts:
    """Fakes of all ports in one object: cluster, journal, leader election and clock."""

    counts: dict[str, int] = attrs.field(factory=lambda: set_up(DOCUMENTS, SOURCES))
    entries: list[ExpansionEntry] = attrs.field(factory=list)
    now_ms: int = 1_000
    term: int | None = 7
    is_confirmed: bool = True
    is_replaced: bool = False
    is_reachable: bool = True
    reads: int = 0
    validations: int = 0
    is_closed: bool = False
    calls: list[tuple[int, int]] = attrs.field(factory=list)
    committed: dict[str, int] = attrs.field(factory=dict)
    are_offsets_readable: bool = True
    requested: list[Mapping[str, TopicCounts]] = attrs.field(factory=list)

    def partition_counts(self) -> TopicCounts:
        self.reads += 1
        if not self.is_reachable:
            raise ProblemsError(unreachable())
        return dict(self.counts)

    def offset_metadata(self, topics: Mapping[str, TopicCounts]) -> Mapping[str, OffsetTexts]:
        self.requested.append(topics)
        if not self.are_offsets_readable:
            return dict.fromkeys(topics, unreachable()[0])
        return {id_: (OffsetMetadata(3).encode(0, count=self.committed.get(id_)),) for id_ in topics}

    def expand(self, shortfalls: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        self.validations += validate_only
        if not validate_only:
            self.counts |= {item.topic: item.required for item in shortfalls}
        return tuple(TopicResult(item.topic, item.required, Outcome.EXPANDED) for item in shortfalls)

    def poll(self) -> int | None:
        return self.term

    def confirm(self, term: int) -> bool:
        return self.is_confirmed and term == self.term

    def append(self, entry: ExpansionEntry, term: int) -> None:
        if self.is_replaced:
            raise NoLongerLeaderError(f"term {term} is over")
        self.entries.append(entry)

    def latest(self, term: int) -> Mapping[str, ExpansionEntry]:
        if self.is_replaced:
            raise NoLongerLeaderError(f"term {term} is over")
        return {entry.application: entry for entry in self.entries}

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def jitter(self) -> float:
        return 0.0

    def wait(self, seconds: float) -> None:
        self.now_ms += max(1, int(seconds * 1000))

    def on_partition_expansion(self, old: int, new: int) -> None:
        self.calls.append((old, new))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def ports() -> FakePorts:
    return FakePorts()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def loop(ports: FakePorts, recorder: Recorder) -> Loop:
    def callbacks(_: str) -> Callback:
        return ports

    return Loop(
        cluster=ports,
        leadership=ports,
        journal=ports,
        clock=ports,
        instruments=recorder,
        documents=InMemory(DOCUMENTS),
        policy=AgentPolicy(client_id="agent-1", poll_ms=5_000),
        callbacks=callbacks,
    )


def seconds_passed(ports: FakePorts, number: float) -> Callable[[], bool]:
    """Return a condition that is true after this time."""
    end = ports.now_ms + number * 1000
    return lambda: ports.now_ms >= end


def test_loop_expands_calls_callback_and_gives_leadership_up_at_end(
    loop: Loop, ports: FakePorts, recorder: Recorder
) -> None:
    ports.counts["orders"] = 6
    loop.run(seconds_passed(ports, 20))
    assert ports.counts[CHANGELOG] == 6
    assert ports.calls == [(4, 6)]
    assert [entry.stage for entry in ports.entries] == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]
    operations = {operation for operation, _ in recorder.requests}
    assert operations == {"metadata", "offsets", "journal", "validate", "expand"}
    assert ports.requested[0] == {"totals-app": {CHANGELOG: 1, REPARTITION: 4}}
    assert len(recorder.of(LeadershipGained)) == len(recorder.of(Notified)) == 1
    assert ports.is_closed


def test_loop_keeps_reading_after_clock_was_set_back(loop: Loop, ports: FakePorts) -> None:
    loop.run(seconds_passed(ports, 3))
    ports.now_ms -= 3_600_000
    reads = ports.reads
    loop.run(seconds_passed(ports, 11))
    assert ports.reads >= reads + 2


def test_loop_reads_cluster_at_once_on_request(loop: Loop, ports: FakePorts) -> None:
    loop.iterate()
    reads = ports.reads
    loop.iterate()
    assert ports.reads == reads
    loop.read_now()
    loop.iterate()
    assert ports.reads == reads + 1


def test_loop_applies_a_switch_of_autoscaling_at_once(loop: Loop, ports: FakePorts) -> None:
    loop.documents = switched = SwitchedDocuments(InMemory(DOCUMENTS))
    switched.switch(enabled=False)
    ports.counts["orders"] = 6
    loop.iterate()
    assert loop.state.applications["totals-app"].phase is Phase.STOPPED
    reads = ports.reads
    switched.switch(enabled=True)
    loop.iterate()
    assert ports.counts[CHANGELOG] == 6
    assert ports.reads == reads + 1
    loop.iterate()
    assert ports.reads == reads + 1


def test_nothing_is_changed_without_confirmation_of_cluster(
    loop: Loop, ports: FakePorts, recorder: Recorder
) -> None:
    ports.is_confirmed = False
    ports.counts["orders"] = 6
    loop.run(seconds_passed(ports, 20))
    assert ports.counts[CHANGELOG] == 4
    assert recorder.of(AttemptFailed)
    ports.is_confirmed = True
    loop.run(seconds_passed(ports, 60))
    assert ports.counts[CHANGELOG] == 6
    assert ports.validations == 1


def test_term_that_journal_refuses_has_ended(loop: Loop, ports: FakePorts, recorder: Recorder) -> None:
    loop.run(seconds_passed(ports, 2))
    ports.is_replaced = True
    ports.counts["orders"] = 6
    loop.run(seconds_passed(ports, 20))
    assert ports.counts[CHANGELOG] == 4
    assert recorder.phase("totals-app") is Phase.WAITING
    assert len(recorder.of(LeadershipLost)) == 1
    ports.is_replaced, ports.term = False, 8
    loop.run(seconds_passed(ports, 20))
    assert ports.counts[CHANGELOG] == 6


def test_loop_waits_for_cluster_that_is_unreachable_for_an_hour(
    loop: Loop, ports: FakePorts, recorder: Recorder
) -> None:
    ports.is_reachable = False
    loop.run(seconds_passed(ports, 3_600))
    assert 100 < ports.reads < 200
    ports.is_reachable = True
    ports.counts["orders"] = 6
    loop.run(seconds_passed(ports, 60))
    assert ports.calls == [(4, 6)]
    assert recorder.state.failures == 0


def test_election_is_polled_between_slow_requests(
    loop: Loop, ports: FakePorts, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a broker hangs, each request lasts until its time-out, and the next one is due then."""

    def time_out(*_: object) -> None:
        ports.now_ms += 16_000
        raise ProblemsError(unreachable())

    def counts_once(ports: FakePorts) -> TopicCounts:
        monkeypatch.setattr(FakePorts, "partition_counts", time_out)
        return ports.counts

    loop.run(seconds_passed(ports, 2))
    ports.counts["orders"] = 6
    monkeypatch.setattr(FakePorts, "append", time_out)
    monkeypatch.setattr(FakePorts, "partition_counts", counts_once)
    monkeypatch.setattr(FakePorts, "poll", lambda ports: 7 if ports.now_ms < 40_000 else None)
    loop.run(lambda: bool(recorder.of(LeadershipLost)) or ports.now_ms > 300_000)
    assert ports.now_ms < 80_000


def test_loop_reads_the_number_of_processors_if_changelog_topics_have_more_partitions(
    loop: Loop, ports: FakePorts
) -> None:
    text = ORDERS.replace(', static.partitioner.class: "tenants:ByTenant"', "").replace(
        "id: totals-app", "id: totals-app\n  processors: 2"
    )
    loop.documents = InMemory(documents(text))
    ports.committed["totals-app"] = 2
    ports.counts |= {"orders": 4, "returns": 4, REPARTITION: 4, CHANGELOG: 2, "totals": 4}
    loop.run(seconds_passed(ports, 6))
    assert loop.state.processors == {}
    ports.counts[CHANGELOG] = 4
    ports.are_offsets_readable = False
    loop.run(seconds_passed(ports, 6))
    assert (loop.state.processors, set(loop.state.unread_metadata)) == ({}, {"totals-app"})
    assert ports.requested[-1] == {"totals-app": {REPARTITION: 4}}
    ports.are_offsets_readable = True
    loop.run(seconds_passed(ports, 6))
    assert (loop.state.processors, loop.state.unread_metadata) == ({"totals-app": 2}, {})
