"""Random topologies, batches and caches: columns lead to the same records as records one by one."""

import os
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import settings

from headwater_spark.engine import column_plan
from headwater_spark.engine.column_operators import rows
from headwater_spark.engine.partition_columns import PartitionColumns
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import PoisonRecordError
from tests.runtime.engine.fuzzing.functions import FORMATS
from tests.runtime.engine.fuzzing.rounds import Rounds
from tests.runtime.engine.fuzzing.test_rounds import VERSIONS, Situation, rounds_of
from tests.runtime.partition_columns import by_topic

_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "700"))
_QUICK = 6 * settings().max_examples // 5
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))


@pytest.fixture(autouse=True)
def _all_batches_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_plan, "_RECORDS_PER_KEY", 0)
    monkeypatch.setattr(column_plan, "_RECORDS_OF_JOIN", 0)
    monkeypatch.setattr(column_plan, "_MOST_SKIPPED", 0)
    monkeypatch.setattr(column_plan, "_UPDATES_PER_RECORD", 0)
    monkeypatch.setattr(rows, "_MANY_RECORDS", 2)


@pytest.fixture(autouse=True)
def in_columns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the task of each batch that was processed in columns."""
    found: list[str] = []
    run = column_plan.ColumnPlan.run

    def note(plan: column_plan.ColumnPlan, partitions: Sequence[PartitionColumns]) -> object:
        outputs = run(plan, partitions)
        if outputs is not None:
            found.append(plan._task.task_id)
        return outputs

    monkeypatch.setattr(column_plan.ColumnPlan, "run", note)
    return found


def _written(rounds: Rounds, situation: Situation) -> Iterator[dict[str, list[OutputRecord]] | str]:
    """Yield what each batch writes to each topic; last, the error that ends a task, if there is one."""
    try:
        rounds.start()
        for batch in situation.batches:
            yield by_topic(rounds.process(batch))
    except PoisonRecordError as error:
        yield str(error)


def _situation(seed: int) -> Situation:
    """Return a situation with text, or with values of one of the formats."""
    form = (None, *FORMATS.values())[seed % (len(FORMATS) + 1)]
    if form is None:
        return Situation.of(seed, VERSIONS[-1], has_rare_calls=True)
    return Situation.of_format(form, seed, VERSIONS[-1])


def _check(seed: int) -> None:
    """Compare a situation in columns with single records."""
    situation = _situation(seed)
    single = rounds_of(situation.document)
    columnar = Rounds(single.programs, in_columns=True)
    assert list(_written(columnar, situation)) == list(_written(single, situation)), f"seed {seed}"
    for name, task in single.tasks.items():
        assert columnar.tasks[name].context.dropped == task.context.dropped, f"seed {seed}"


def test_columns_lead_to_the_same_records(in_columns: list[str]) -> None:
    for seed in range(_QUICK):
        _check(seed)
    assert len(in_columns) > _QUICK // 6


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_columns_lead_to_the_same_records_for_long() -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        _check(seed)
