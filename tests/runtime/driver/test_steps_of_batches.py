"""A batch that is processed in steps, without Spark."""

from typing import TYPE_CHECKING, Any, cast

import attrs

from spark_jobs.runtime.driver.batch import BatchProcessor
from spark_jobs.runtime.driver.step_planner import Offsets, StepPlanner

if TYPE_CHECKING:
    from spark_jobs.runtime.driver.query_specs import QuerySpec

_IN = ("in", 0)


@attrs.define
class _Spec:
    """A query that reads one partition, which has 120 records more than Spark's batch."""

    spark_end: int
    reported: list[Offsets] = attrs.field(factory=list)
    reads_single_topic = False
    ticks = False

    def step_planner(self) -> StepPlanner:
        return StepPlanner(100)

    def expansion(self) -> None:
        return None

    def batch_offsets(self, _batch: int) -> tuple[Offsets, Offsets]:
        return {_IN: 0}, {_IN: self.spark_end}

    def first_offsets(self) -> Offsets:
        return {}

    def end_offsets(self) -> Offsets:
        return {_IN: self.spark_end + 120}

    def report_positions(self, positions: Offsets) -> None:
        self.reported.append(positions)


class _Batches(BatchProcessor):
    """Tasks process all records of a step."""

    def _process_step(self, planner: StepPlanner, batch: int, ranges: Any, ends: Any, *, tick: bool) -> None:  # noqa: ANN401, ARG002
        planner.advance(ranges, {}, ends, 0)


def test_records_after_the_batch_are_not_reported_as_read() -> None:
    """Spark's next batch begins with them: they must not be purged before, although they are processed."""
    spec = _Spec(spark_end=150)
    batches = _Batches(cast("QuerySpec", spec))
    batches.start({})
    rows: Any = None
    batches(rows, 1)
    assert spec.reported == [{_IN: 100}, {_IN: 150}]
