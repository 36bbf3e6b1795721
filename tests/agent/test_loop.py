"""The loop with everything around it faked: what it does with answers that are no answers."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from infra.model.problems import ProblemsError
from spark_jobs.agent.decide import AgentPolicy
from spark_jobs.agent.events import AttemptFailed, LeadershipGained, LeadershipLost, Notified
from spark_jobs.agent.loop import Loop
from spark_jobs.agent.ports import Callback, NoLongerLeaderError
from spark_jobs.agent.state import (
    ExpansionEntry,
    Outcome,
    Phase,
    Shortfall,
    Stage,
    TopicCounts,
    TopicResult,
)
from tests.agent.running import InMemory, Recorder
from tests.agent.simulation import CHANGELOG, ORDERS, documents, set_up, unreachable

DOCUMENTS = documents(ORDERS)
SOURCES = {"orders": 4, "returns": 4}


@attrs.define
class World:
    """All ports in one: a cluster, a journal, an election and a clock."""

    counts: dict[str, int] = attrs.field(factory=lambda: set_up(DOCUMENTS, SOURCES))
    entries: list[ExpansionEntry] = attrs.field(factory=list)
    now_ms: int = 1_000
    term: int | None = 7
    is_confirmed: bool = True
    is_deposed: bool = False
    is_reachable: bool = True
    looks: int = 0
    validations: int = 0
    is_closed: bool = False
    calls: list[tuple[int, int]] = attrs.field(factory=list)

    def partition_counts(self) -> TopicCounts:
        self.looks += 1
        if not self.is_reachable:
            raise ProblemsError(unreachable())
        return dict(self.counts)

    def expand(self, lacking: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        self.validations += validate_only
        if not validate_only:
            self.counts |= {item.topic: item.required for item in lacking}
        return tuple(TopicResult(item.topic, item.required, Outcome.EXPANDED) for item in lacking)

    def poll(self) -> int | None:
        return self.term

    def confirm(self, term: int) -> bool:
        return self.is_confirmed and term == self.term

    def append(self, entry: ExpansionEntry, term: int) -> None:
        if self.is_deposed:
            raise NoLongerLeaderError(f"term {term} is over")
        self.entries.append(entry)

    def latest(self, term: int) -> Mapping[str, ExpansionEntry]:
        if self.is_deposed:
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
def world() -> World:
    return World()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def loop(world: World, recorder: Recorder) -> Loop:
    def callbacks(_: str) -> Callback:
        return world

    return Loop(
        cluster=world,
        leadership=world,
        journal=world,
        clock=world,
        instruments=recorder,
        documents=InMemory(DOCUMENTS),
        policy=AgentPolicy(client_id="agent-1", poll_ms=5_000),
        callbacks=callbacks,
    )


def seconds(world: World, number: float) -> Callable[[], bool]:
    """Return what is true once so much time has passed."""
    end = world.now_ms + number * 1000
    return lambda: world.now_ms >= end


def test_loop_expands_calls_callback_and_gives_leadership_up_at_end(
    loop: Loop, world: World, recorder: Recorder
) -> None:
    world.counts["orders"] = 6
    loop.run(seconds(world, 20))
    assert world.counts[CHANGELOG] == 6
    assert world.calls == [(4, 6)]
    assert [entry.stage for entry in world.entries] == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]
    assert {operation for operation, _ in recorder.requests} == {"metadata", "journal", "validate", "expand"}
    assert len(recorder.of(LeadershipGained)) == len(recorder.of(Notified)) == 1
    assert world.is_closed


def test_loop_keeps_reading_after_clock_was_set_back(loop: Loop, world: World) -> None:
    loop.run(seconds(world, 3))
    world.now_ms -= 3_600_000
    looks = world.looks
    loop.run(seconds(world, 11))
    assert world.looks >= looks + 2


def test_loop_reads_cluster_at_once_on_request(loop: Loop, world: World) -> None:
    loop.iterate()
    looks = world.looks
    loop.iterate()
    assert world.looks == looks
    loop.read_now()
    loop.iterate()
    assert world.looks == looks + 1


def test_nothing_is_changed_without_confirmation_of_cluster(
    loop: Loop, world: World, recorder: Recorder
) -> None:
    world.is_confirmed = False
    world.counts["orders"] = 6
    loop.run(seconds(world, 20))
    assert world.counts[CHANGELOG] == 4
    assert recorder.of(AttemptFailed)
    world.is_confirmed = True
    loop.run(seconds(world, 60))
    assert world.counts[CHANGELOG] == 6
    assert world.validations == 1


def test_term_that_journal_refuses_has_ended(loop: Loop, world: World, recorder: Recorder) -> None:
    loop.run(seconds(world, 2))
    world.is_deposed = True
    world.counts["orders"] = 6
    loop.run(seconds(world, 20))
    assert world.counts[CHANGELOG] == 4
    assert recorder.phase("totals-app") is Phase.WAITING
    assert len(recorder.of(LeadershipLost)) == 1
    world.is_deposed, world.term = False, 8
    loop.run(seconds(world, 20))
    assert world.counts[CHANGELOG] == 6


def test_loop_waits_for_cluster_that_is_unreachable_for_an_hour(
    loop: Loop, world: World, recorder: Recorder
) -> None:
    world.is_reachable = False
    loop.run(seconds(world, 3_600))
    assert 100 < world.looks < 200
    world.is_reachable = True
    world.counts["orders"] = 6
    loop.run(seconds(world, 60))
    assert world.calls == [(4, 6)]
    assert recorder.state.failures == 0


def test_election_is_polled_between_slow_requests(
    loop: Loop, world: World, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a broker hangs each request takes its time-out, and the next one is due by then."""

    def unanswered(*_: object) -> None:
        world.now_ms += 16_000
        raise ProblemsError(unreachable())

    def seen_once(world: World) -> TopicCounts:
        monkeypatch.setattr(World, "partition_counts", unanswered)
        return world.counts

    loop.run(seconds(world, 2))
    world.counts["orders"] = 6
    monkeypatch.setattr(World, "append", unanswered)
    monkeypatch.setattr(World, "partition_counts", seen_once)
    monkeypatch.setattr(World, "poll", lambda world: 7 if world.now_ms < 40_000 else None)
    loop.run(lambda: bool(recorder.of(LeadershipLost)) or world.now_ms > 300_000)
    assert world.now_ms < 80_000
