"""However input is cut into batches, wherever a worker dies, state is restored: the results are the same."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.runtime.engine.program_interface import EngineSettings
from spark_jobs.runtime.engine.records import InputRecord, OutputRecord
from spark_jobs.runtime.engine.stores.backend import BatchedState, MemoryBackend
from spark_jobs.runtime.engine.task import Task
from spark_jobs.runtime.worker.local_state import MemoryState
from tests.runtime.engine.task.topologies import CLASSES, TOPOLOGIES
from tests.runtime.topology_runner import NO_CACHE, Driver

Input = tuple[str | None, str | None, int]

INPUTS = st.lists(
    st.tuples(
        st.sampled_from(["k", "l", "", None]),
        st.sampled_from(["a", "b", "c", "", None]),
        st.integers(min_value=0, max_value=400).map(lambda tenths: 100 * tenths),
    ),
    max_size=25,
)
CACHED = EngineSettings(emit_interval_ms=0)
QUICK = settings(max_examples=settings().max_examples // 4)
EACH = pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=TOPOLOGIES)


def records(driver: Driver, inputs: Sequence[Input]) -> list[InputRecord]:
    return [driver.record("in", _bytes(key), _bytes(value), timestamp) for key, value, timestamp in inputs]


def fed(driver: Driver, inputs: Sequence[Input]) -> list[OutputRecord]:
    return driver.feed(*records(driver, inputs))


def one_by_one(topology: str, inputs: Sequence[Input]) -> list[OutputRecord]:
    driver = Driver(topology, NO_CACHE, CLASSES)
    for each in inputs:
        fed(driver, [each])
    return driver.all_outputs


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def by_topic(outputs: Sequence[OutputRecord]) -> dict[str, list[OutputRecord]]:
    grouped: dict[str, list[OutputRecord]] = {}
    for output in outputs:
        if "SUPPRESS" not in output[0]:  # what these log depends on when a batch ends
            grouped.setdefault(output[0], []).append(output)
    return grouped


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_batches_and_new_workers_change_nothing(topology: str, inputs: list[Input], cut: int) -> None:
    driver = Driver(topology, NO_CACHE, CLASSES)
    fed(driver, inputs[:cut])
    driver.reopen()
    fed(driver, inputs[cut:])
    assert by_topic(driver.all_outputs) == by_topic(one_by_one(topology, inputs))


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_state_restored_from_changelogs_goes_on_alike(topology: str, inputs: list[Input], cut: int) -> None:
    driver = Driver(topology, NO_CACHE, CLASSES)
    for each in inputs[:cut]:
        fed(driver, [each])
    restore(driver)
    for each in inputs[cut:]:
        fed(driver, [each])
    assert by_topic(driver.all_outputs) == by_topic(one_by_one(topology, inputs))


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_state_with_caches_is_restored_as_well(topology: str, inputs: list[Input], cut: int) -> None:
    straight, restored = (Driver(topology, CACHED, CLASSES) for _ in range(2))
    for driver in (straight, restored):
        fed(driver, inputs[:cut])
    restore(restored)
    for driver in (straight, restored):
        fed(driver, inputs[cut:])
    assert by_topic(restored.all_outputs) == by_topic(straight.all_outputs)


def restore(driver: Driver) -> None:
    """New states out of what was logged; times of operators come with the offsets, those of stores do not."""
    for program in driver.programs:
        restored = MemoryState()
        restored.metadata.update(
            {
                name: time
                for name, time in driver.states[program.name].metadata.items()
                if not name.endswith(("/time", "/records", "/bytes"))
            }
        )
        task = Task(program, 0, restored)
        for store in program.stores:
            changelog = program.changelog(store.name)
            if changelog is not None:
                logged = [output for output in driver.all_outputs if output[0] == changelog]
                task.restore(
                    changelog,
                    [(topic, 0, offset, time, key, value, headers)
                     for offset, (topic, _, key, value, time, headers) in enumerate(logged)],
                )  # fmt: skip
        restored.commit(driver.states[program.name].version - 1)
        driver.states[program.name] = restored
    driver.reopen()


class DeathError(Exception):
    """The worker dies."""


STEPS = ("processed", "prepared", "sent", "applied")


@pytest.mark.parametrize("step", STEPS)
@EACH
@settings(max_examples=5)
@given(inputs=INPUTS, place=st.integers(0, 8))
def test_a_death_between_any_two_steps_loses_and_doubles_nothing(
    topology: str, step: str, inputs: list[Input], place: int
) -> None:
    """The protocol of a batch as the runtime runs it; the cluster takes a transaction all or nothing."""
    if len(Driver(topology, NO_CACHE, CLASSES).programs) > 1:
        return  # several queries each follow the protocol on their own
    sent: list[OutputRecord] = []
    marker = 0
    backend = MemoryBackend()
    batches = [inputs[at : at + 3] for at in range(0, len(inputs), 3)]
    crashes = {place}
    while marker < len(batches):
        driver = Driver(topology, NO_CACHE, CLASSES, state=lambda: BatchedState(backend))
        (program,) = driver.programs
        state = driver.states[program.name]
        assert state.recover(marker)
        task = driver.tasks[program.name] = Task(program, 0, state)
        driver.skip("in", 3 * marker)
        try:
            outputs = task.process(records(driver, batches[marker]), 0)
            _die(step, "processed", marker, crashes)
            state.prepare(marker)
            _die(step, "prepared", marker, crashes)
            sent += outputs
            marker += 1
            _die(step, "sent", marker - 1, crashes)
            state.commit(marker - 1)
            _die(step, "applied", marker - 1, crashes)
        except DeathError:
            continue
    straight = Driver(topology, NO_CACHE, CLASSES)
    expected = [output for batch in batches for output in fed(straight, batch)]
    assert sent == expected


def _die(wanted: str, step: str, batch: int, crashes: set[int]) -> None:
    if step == wanted and batch in crashes:
        crashes.remove(batch)
        raise DeathError


ONE_KEY_ONE_UPDATE = {"count", "reduce", "tumbling", "hopping", "table filter", "unlimited"}


@pytest.mark.parametrize("name", sorted(ONE_KEY_ONE_UPDATE))
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_a_cache_leaves_the_last_update_of_each_key_and_batch(
    name: str, inputs: list[Input], cut: int
) -> None:
    cached = Driver(TOPOLOGIES[name], CACHED, CLASSES)
    plain = Driver(TOPOLOGIES[name], NO_CACHE, CLASSES)
    for part in (inputs[:cut], inputs[cut:]):
        updates = _last(fed(plain, part))
        got = fed(cached, part)
        assert len(_last(got)) == len([output for output in got if output[0] == "out"])
        absent = {key for key, value in updates.items() if value[0] is None} - _last(got).keys()
        assert {key: value for key, value in updates.items() if key not in absent} == _last(got)


def _last(outputs: Sequence[OutputRecord]) -> dict[bytes | None, tuple[bytes | None, int]]:
    return {key: (value, time) for topic, _, key, value, time, _ in outputs if topic == "out"}


FINAL_TABLES = sorted(set(TOPOLOGIES) - {"processor"} - {name for name in TOPOLOGIES if "suppress" in name})


@pytest.mark.parametrize("name", FINAL_TABLES)
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_tables_end_alike_with_and_without_a_cache(name: str, inputs: list[Input], cut: int) -> None:
    if "on close" in name:  # without a cache what expires by the record that closes it is lost
        inputs = sorted(inputs, key=lambda each: each[2])
    cached = Driver(TOPOLOGIES[name], CACHED, CLASSES)
    plain = Driver(TOPOLOGIES[name], NO_CACHE, CLASSES)
    for part in (inputs[:cut], inputs[cut:]):
        fed(plain, part)
        fed(cached, part)
    ends, expected = _present(cached.all_outputs), _present(plain.all_outputs)
    if "on close" in name:
        assert expected.items() <= ends.items()
    else:
        assert ends == expected


def _present(outputs: Sequence[OutputRecord]) -> dict[bytes | None, bytes | None]:
    """Without groups that are empty: with a cache one that came and went in a batch never was."""
    nothing = (None, b"", bytes(8))
    return {key: value for key, (value, _) in _last(outputs).items() if value not in nothing}
