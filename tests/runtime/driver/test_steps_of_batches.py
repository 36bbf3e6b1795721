"""A batch that is processed in steps, without Spark."""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.record_sizes import BYTES_AT_ONCE, RecordSizes
from headwater_spark.driver.input.step_planner import StepPlanner
from headwater_spark.driver.queries.batch import BatchProcessor
from headwater_spark.driver.queries.batch_steps import BatchSteps
from headwater_spark.engine.records import Offsets, TopicPartition

if TYPE_CHECKING:
    from headwater_spark.driver.queries.specs import QuerySpec

_IN, _ADDED = ("in", 0), ("in", 1)
_SECONDS = 90.0


@attrs.define
class _Spec:
    """A query that reads one partition, which has 120 records more than Spark's batch.

    Spark also reads 30 records of a partition that is added to the layout when the batch waits for it.
    """

    spark_end: int
    expansions: list["_Expansion"] = attrs.field(factory=list)
    """What is returned one after the other; then None."""
    reported: list[Offsets] = attrs.field(factory=list)
    ticks = False
    reads_in_steps = True
    native_program = None
    exactly_once: bool = False
    reads_single_topic: bool = False
    added: set[TopicPartition] = attrs.field(factory=set)
    partitions: set[TopicPartition] = attrs.field(factory=lambda: {_IN})
    """The partitions of the layout."""
    checks: int = 0
    bytes_at_once: int = BYTES_AT_ONCE
    waits: list[bool] = attrs.field(factory=list)
    """For each wait, whether it was for an added partition."""

    @property
    def input(self) -> "_Spec":
        return self

    @property
    def services(self) -> "_Spec":
        return self

    @property
    def batches(self) -> "_Spec":
        return self

    def create_step_planner(self) -> StepPlanner:
        return StepPlanner(100)

    def create_record_sizes(self) -> RecordSizes:
        return RecordSizes(self.bytes_at_once, lambda _: [("in", 10, 1_000)])

    def create_expansion(self) -> "_Expansion | None":
        return self.expansions.pop(0) if self.expansions else None

    def batch_offsets(self, _batch: int) -> tuple[Offsets, Offsets]:
        return {_IN: 0}, {_IN: self.spark_end, **dict.fromkeys(self.added, 30)}

    def first_offsets(self) -> Offsets:
        return {}

    def end_offsets(self) -> Offsets:
        return {_IN: self.spark_end + 120, **dict.fromkeys(self.added & self.partitions, 30)}

    def has_partitions(self, partitions: Iterable[TopicPartition]) -> bool:
        return self.partitions.issuperset(partitions)

    def request_check(self) -> None:
        self.checks += 1

    def record_wait(self, _batch: int, *, for_partitions: bool) -> None:
        self.waits.append(for_partitions)
        self.partitions |= self.added

    def record_positions(self, positions: Offsets) -> None:
        self.reported.append(positions)


@attrs.frozen
class _Expansion:
    """`applies`: tasks have several partitions of the topic."""

    applies: bool
    end: int

    def applies_to(self, _ends: Offsets) -> bool:
        return self.applies

    def positions(self) -> Offsets:
        return {}

    def readable_ends(self, _until: Offsets, _positions: Offsets) -> Offsets:
        return {_IN: self.end}


class _Steps(BatchSteps):
    """Tasks process all records of a step; `in_step` is called meanwhile."""

    in_step: Callable[[], None] = staticmethod(lambda: None)
    read_to: Offsets | None = None
    """Where the last step has ended."""

    def _process_step(self, planner: StepPlanner, batch: int, ranges: Any, ends: Any, *, tick: bool) -> bool:  # noqa: ANN401, ARG002
        self.in_step()
        planner.advance(ranges, {}, ends, 0)
        self.read_to = planner.positions
        return True

    def _process_whole(self, rows: Any, batch: int) -> Offsets:  # noqa: ANN401
        raise AssertionError(rows, batch)


class _Batches(BatchProcessor):
    def __init__(self, spec: "QuerySpec", on_commit: Callable[[], None] = lambda: None) -> None:
        super().__init__(spec, on_commit)
        self.steps = _Steps(spec, self._runner, self._stopping, self._may_begin, on_commit)
        self._steps = self.steps


@pytest.mark.parametrize(("reads_single_topic", "end"), [(False, 200), (True, 150)])
def test_records_after_the_batch_are_not_reported_as_read(*, reads_single_topic: bool, end: int) -> None:
    """Spark's next batch begins with them: they must not be purged before, although they are processed.

    Of several topics, they are read because of their times. Of one topic, they would only be read twice.
    """
    spec = _Spec(spark_end=150, reads_single_topic=reads_single_topic)
    batches = _Batches(cast("QuerySpec", spec))
    batches.start({})
    rows: Any = None
    batches(rows, 1)
    assert spec.reported == [{_IN: 100}, {_IN: 150}]
    assert batches.steps.read_to == {_IN: end}


def test_a_batch_of_large_records_is_processed_in_smaller_steps() -> None:
    """Each record has 100 bytes; the limit of 100 records does not matter then."""
    spec = _Spec(spark_end=90, reads_single_topic=True, bytes_at_once=3_000)
    batches = _Batches(cast("QuerySpec", spec))
    batches.start({})
    rows: Any = None
    batches(rows, 1)
    assert spec.reported == [{_IN: 30}, {_IN: 60}, {_IN: 90}]


@pytest.mark.parametrize("reads_single_topic", [False, True])
def test_an_added_partition_is_read_when_the_layout_has_it(*, reads_single_topic: bool) -> None:
    """Spark reads it as soon as it exists. Newer records of other partitions do not wait for it."""
    spec = _Spec(spark_end=150, reads_single_topic=reads_single_topic, added={_ADDED})
    batches = _Batches(cast("QuerySpec", spec))
    batches.start({})
    rows: Any = None
    batches(rows, 1)
    assert spec.checks == 1
    assert spec.waits == [True]
    assert batches.steps.read_to == {_IN: 270, _ADDED: 30}
    assert spec.reported[-1] == {_IN: 150, _ADDED: 30}


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("expansions", [(), (True, True), (True, False)])
@pytest.mark.parametrize(
    ("positions", "read"),
    [
        (None, [{_IN: 100}, {_IN: 200}, {_IN: 250}]),
        ({_IN: 90}, [{_IN: 100}, {_IN: 190}, {_IN: 250}]),
    ],
    ids=["canceled", "processors were added"],
)
def test_a_batch_is_held_between_two_of_its_steps(
    batch: int, positions: Offsets | None, read: list[Offsets], expansions: tuple[bool, ...]
) -> None:
    """A batch of a long backlog takes minutes; other queries are held meanwhile.

    What is left of it is read in steps, also if each task has one partition then: what is processed may have
    been purged.
    """
    spec = _Spec(250, [_Expansion(each, end=370) for each in expansions])
    spec.reads_single_topic = bool(expansions)
    batches = _Batches(cast("QuerySpec", spec))
    batches.start({})
    batches.steps.in_step = batches.request_hold
    committed = None if positions is None else {each: (offset, "") for each, offset in positions.items()}
    rows: Any = None
    thread = Thread(target=batches, args=(rows, batch))
    thread.start()
    try:
        assert until(lambda: spec.reported, _SECONDS)
        assert batches.hold(_SECONDS)
        assert spec.reported == read[:1]
        batches.steps.in_step = lambda: None
    finally:
        batches.release(committed)
        thread.join(_SECONDS)
    assert not thread.is_alive()
    assert spec.reported == read


@pytest.mark.parametrize("exactly_once", [False, True])
def test_commits_are_known_after_a_hold(*, exactly_once: bool) -> None:
    """A task without records commits nothing afterwards, so its commit could not be repaired."""
    spec = _Spec(250)
    spec.exactly_once = exactly_once
    batches = _Batches(cast("QuerySpec", spec))
    before, after = {_IN: (20, "before")}, {_IN: (50, "after")}
    batches.start({_IN: 20}, before)
    assert batches.hold(_SECONDS)
    batches.release()
    assert batches.known_commits.commits == before, "nothing was committed meanwhile"
    assert batches.hold(_SECONDS)
    batches.release(after)
    assert batches.known_commits.commits == ({} if exactly_once else after)
    batches.forget_commits()
    assert not batches.known_commits.commits


def test_each_step_reports_that_it_has_committed() -> None:
    commits: list[int] = []
    spec = _Spec(spark_end=250)
    batches = _Batches(cast("QuerySpec", spec), on_commit=lambda: commits.append(len(spec.reported)))
    batches.start({})
    rows: Any = None
    batches(rows, 1)
    assert commits == [0, 1, 2]
