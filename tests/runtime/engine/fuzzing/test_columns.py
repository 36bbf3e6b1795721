"""Random topologies, batches and caches: columns lead to the same records as records one by one."""

import os
from collections.abc import Iterator

import pytest

from headwater_spark.engine import column_plan
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import PoisonRecordError
from tests.runtime.engine.fuzzing.rounds import Rounds
from tests.runtime.engine.fuzzing.test_rounds import VERSIONS, Situation, rounds_of
from tests.runtime.partition_columns import by_topic

_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "700"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))


@pytest.fixture(autouse=True)
def _all_batches_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_plan, "_RECORDS_PER_KEY", 0)
    monkeypatch.setattr(column_plan, "_MOST_SKIPPED", 0)
    monkeypatch.setattr(column_plan, "_UPDATES_PER_RECORD", 0)


def _written(rounds: Rounds, situation: Situation) -> Iterator[dict[str, list[OutputRecord]] | str]:
    """Yield what each batch writes to each topic; last, the error that ends a task, if there is one."""
    try:
        rounds.start()
        for batch in situation.batches:
            yield by_topic(rounds.process(batch))
    except PoisonRecordError as error:
        yield str(error)


def _check(seed: int) -> bool:
    """Compare a situation in columns with single records; return whether a task has a plan for columns."""
    situation = Situation.of(seed, VERSIONS[-1], has_rare_calls=True)
    single = rounds_of(situation.document)
    in_columns = Rounds(single.programs, in_columns=True)
    assert list(_written(in_columns, situation)) == list(_written(single, situation)), f"seed {seed}"
    for name, task in single.tasks.items():
        assert in_columns.tasks[name].context.dropped == task.context.dropped, f"seed {seed}"
    return any(task.is_columnar for task in in_columns.tasks.values())


def test_columns_lead_to_the_same_records() -> None:
    are_columnar = [_check(seed) for seed in range(60)]
    assert sum(are_columnar) > 10


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_columns_lead_to_the_same_records_for_long() -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        _check(seed)
