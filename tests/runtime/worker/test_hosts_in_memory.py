"""Random batches of a task on three hosts; the broker in memory fences no process (`at_least_once`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.offset_metadata import OffsetMetadata, StateVersion, latest_metadata
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task import Task
from headwater_spark.worker import restore, state_proof, task_batch
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.state_proof import PROOF_SECONDS, CommittedState, StateProof
from headwater_spark.worker.task_owner import TaskOwner
from headwater_spark.worker.task_session import TaskSession
from tests.runtime.worker.memory_broker import COUNTS, IN, batch_request
from tests.runtime.worker.several_hosts import KEYS, ObservedInput, input_records

QUICK = settings(max_examples=settings().max_examples // 2, deadline=None)
_HOSTS = 3
_LONG = PROOF_SECONDS + 1


@attrs.define
class Log:
    """What Kafka has of the task. `history` is (version, offset) of each commit; `after_write` runs once."""

    committed: dict[TopicPartition, tuple[int, str]] = attrs.field(factory=dict)
    records: list[OutputRecord] = attrs.field(factory=list)
    history: list[tuple[int, int]] = attrs.field(factory=list)
    after_write: list[Callable[[], object]] = attrs.field(factory=list)

    def state(self) -> CommittedState:
        metadata = latest_metadata(text for _, text in self.committed.values()) or OffsetMetadata()
        return CommittedState(metadata, {each: offset for each, (offset, _) in self.committed.items()})

    def session(self, request: BatchRequest, partition: int, **_: object) -> TaskSession:
        """Return what `open_session` returns."""
        producer, found = _Producer(self), self.state()
        session = TaskSession(producer, found.metadata, dict(found.offsets))
        session.proof = StateProof(
            request,
            partition,
            lambda: CommittedState(session.metadata, session.offsets),
            self.state,
            at=state_proof.boot_seconds(),
        )
        producer.before_commit = session.proof.before_commit
        return session

    def read_changelogs(self, request: BatchRequest, partition: int, state: BatchedState, _: object) -> int:
        """Apply the changelog records after those that the state has."""
        task, restored = Task(request.program, partition, state), 0
        for topic in request.program.changelogs.values():
            written = [record for record in self.records if record[0] == topic]
            new = [
                (topic, 0, offset, time, key, value, tuple(headers))
                for offset, (_, _, key, value, time, headers) in enumerate(written)
                if offset >= state.offsets().get(topic, 0)
            ]
            task.restore(topic, tuple(new))
            state.commit(state.version - 1, {topic: len(written)})
            restored += len(new)
        return restored

    def counts(self) -> Mapping[bytes, list[int]]:
        """Return key → its counts in the output topic."""
        found: dict[bytes, list[int]] = {}
        for topic, _, key, value, *_ in self.records:
            if topic == "out":
                found.setdefault(key or b"", []).append(int.from_bytes(value or b"", "big"))
        return found


@attrs.define
class _Producer:
    """Writes at once, and commits whatever it gets."""

    log: Log
    before_commit: Callable[[], None] = attrs.field(default=lambda: None)

    def send(self, records: Iterable[OutputRecord]) -> int:
        sent = list(records)
        self.log.records += sent
        while self.log.after_write:
            self.log.after_write.pop()()
        return len(sent)

    def commit(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self.before_commit()
        self.log.committed.update(commits)
        state = self.log.state()
        self.log.history.append((state.metadata.version, state.offsets[IN]))

    def abort(self) -> None:
        """Do nothing: what is written stays."""


@attrs.frozen
class Step:
    """A batch of `records` on `host`. `more` is how many records the batch of another host has in addition.

    `event` is "lost" if the driver does not get the result; "failed" if the batch fails before it writes;
    "frozen" or "frozen after writing" if the task is given to another host meanwhile; "restarted" if the
    processes of the host are new.
    """

    host: int
    records: int
    event: str = ""
    more: int = 0
    repeated: int = 0


EVENTS = ("", "", "", "lost", "failed", "restarted", "frozen")
STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, _HOSTS - 1),
        st.integers(1, 8),
        st.sampled_from(EVENTS),
        st.sampled_from([0, 3]),
        st.sampled_from([0, 0, 2, 20]),
    ),
    min_size=2,
    max_size=14,
)


@attrs.define
class Driver:
    """Sends the batches to the hosts, as Spark does; `version` is what it knows of the task's state."""

    folder: Path
    log: Log = attrs.field(factory=Log)
    owners: dict[int, TaskOwner] = attrs.field(factory=dict)
    version: StateVersion | None = None
    ahead: float = 0.0
    done: int = 0

    def run(self, step: Step) -> None:
        known, self.version = self.version, None
        first, end = max(0, self.done - step.repeated), self.done + step.records
        match step.event:
            case "failed":
                self._close(step.host)
                with pytest.raises(ZeroDivisionError):
                    self.process(step.host, first, end, known, *[_fail] * 3)
                return
            case "frozen":
                # A driver plans a batch from the committed offset on, and not from the one of another batch.
                self.process(step.host, first, end, known, partial(self._continue, step, first, end))
                self.done = end + step.more
                return
            case "frozen after writing":
                self.log.after_write.append(partial(self._continue, step, first, end))
                self.process(step.host, first, end, known)
                self.done = end + step.more
                return
            case "restarted":
                self._close(step.host)
        result = self.process(step.host, first, end, known)
        self.done = end
        self.version = None if step.event == "lost" else result.state_version

    def process(
        self, host: int, first: int, end: int, known: StateVersion | None, *calls: Callable[[], object]
    ) -> BatchResult:
        request = batch_request(
            COUNTS,
            self.folder / f"host-{host}",
            exactly_once=False,
            versions={} if known is None else {0: known},
            versions_at=state_proof.boot_seconds(),
        )
        input_ = ObservedInput(input_records(IN[0], first, end), list(calls))
        owner = self.owners.setdefault(host, TaskOwner())
        return owner.process_or_forward(request, 0, input_, tick=False)

    def close(self) -> None:
        for host in tuple(self.owners):
            self._close(host)

    def _continue(self, step: Step, first: int, end: int) -> None:
        """Let another host process the batch while the first one is frozen."""
        self.ahead += _LONG
        self.process((step.host + 1) % _HOSTS, first, end + step.more, None)

    def _close(self, host: int) -> None:
        if host in self.owners:
            self.owners.pop(host).close()


def _fail() -> None:
    raise ZeroDivisionError


@contextmanager
def driver() -> Iterator[Driver]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        created = Driver(Path(folder))
        clock = state_proof.boot_seconds
        patched.setattr(state_proof, "boot_seconds", lambda: clock() + created.ahead)
        patched.setattr(task_batch, "open_session", created.log.session)
        patched.setattr(restore, "_restore_from_changelogs", created.log.read_changelogs)
        yield created
        created.close()


def _expected(records: int) -> Mapping[bytes, list[int]]:
    keys: list[InputRecord] = input_records(IN[0], 0, records)
    found: dict[Any, list[int]] = {}
    for record in keys:
        found.setdefault(record[4], []).append(len(found.get(record[4], ())) + 1)
    return found


def _check_commits(log: Log) -> None:
    """Check that neither versions nor offsets go backwards."""
    assert all(before < after for before, after in pairwise(log.history)), log.history
    assert all(before[1] <= after[1] for before, after in pairwise(log.history)), log.history


@QUICK
@given(STEPS)
def test_each_record_counts_once(steps: list[Step]) -> None:
    with driver() as created:
        for step in steps:
            created.run(step)
        assert created.log.counts() == _expected(created.done)
        _check_commits(created.log)


@QUICK
@given(STEPS, st.integers(0, 13))
def test_no_record_is_lost_if_a_host_is_frozen_after_it_has_written(steps: list[Step], at: int) -> None:
    """Some may count twice: at least once."""
    frozen = attrs.evolve(steps[at % len(steps)], event="frozen after writing")
    with driver() as created:
        for step in [*steps, frozen, *steps]:
            created.run(step)
        found, expected = created.log.counts(), _expected(created.done)
        assert {key: max(found[key]) >= len(counts) for key, counts in expected.items()} == dict.fromkeys(
            expected, True
        )
        _check_commits(created.log)


def test_the_series_has_several_keys() -> None:
    assert len(_expected(100)) == KEYS
