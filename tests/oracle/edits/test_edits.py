"""Random edits on a real broker: Kafka Streams keeps, loses and reads what `headwater change` predicts."""

import os
from collections.abc import Callable, Iterator

import pytest

from headwater.toolchain.broker.local import LocalBroker
from tests.oracle.edits.judge import Series, differences, edits_program, make_series
from tests.oracle.kafka_streams import VERSION

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]
_QUICK = 6
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "170"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_VERSIONS = ("3.7.2", "4.1.2", "4.3.1")


def _series(version: str, first: int, number: int, unique: Callable[[str], str]) -> Iterator[Series]:
    """Yield series of together at least `number` edits."""
    seed = first
    while number > 0:
        series = make_series(seed, unique(f"edit{seed}"), version)
        seed += 1
        if series is not None:
            number -= len(series.trials)
            yield series


def _judge(version: str, first: int, number: int, kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    wrong, judged, all_ = [], 0, 0
    with edits_program(version) as program:
        for trial, found in program.run(kafka.bootstrap_servers, _series(version, first, number, unique)):
            faults, reason = differences(trial, found)
            wrong += [f"{trial.id} {trial.edit.kinds}: {fault}" for fault in faults]
            judged, all_ = judged + (not reason), all_ + 1
    assert not wrong, "\n".join(wrong)
    assert judged > all_ * 2 // 3, f"only {judged} of {all_} edits could be judged"


def test_predictions_for_edits(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    _judge(VERSION, 0, _QUICK, kafka, unique)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("version", _VERSIONS)
def test_predictions_for_many_edits(version: str, kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    _judge(version, _FIRST, _LONG, kafka, unique)
