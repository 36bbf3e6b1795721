"""Random edits on a real broker: Kafka Streams keeps, loses and reads what `headwater change` predicts."""

import os
from collections.abc import Callable, Iterator

import pytest

from headwater.toolchain.broker.local import LocalBroker
from tests.oracle.edits.judge import Trial, differences, edits_program, make_trial
from tests.oracle.kafka_streams import VERSION

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]
_QUICK = 6
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "170"))
_VERSIONS = ("3.7.2", "4.1.2", "4.3.1")


def _trials(version: str, first: int, unique: Callable[[str], str]) -> Iterator[Trial]:
    seed = first
    while True:
        trial = make_trial(seed, unique(f"edit{seed}"), version)
        seed += 1
        if trial is not None:
            yield trial


def _judge(version: str, first: int, number: int, kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    trials = [trial for trial, _ in zip(_trials(version, first, unique), range(number), strict=False)]
    wrong, judged = [], 0
    with edits_program(version) as program:
        for trial, found in program.run(kafka.bootstrap_servers, trials):
            faults, reason = differences(trial, found)
            wrong += [f"{trial.id} {trial.edit.kinds}: {fault}" for fault in faults]
            judged += not reason
    assert not wrong, "\n".join(wrong)
    assert judged > number * 2 // 3, f"only {judged} of {number} edits could be judged"


def test_predictions_for_edits(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    _judge(VERSION, 0, _QUICK, kafka, unique)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("version", _VERSIONS)
def test_predictions_for_many_edits(version: str, kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    _judge(version, 1000, _LONG, kafka, unique)
