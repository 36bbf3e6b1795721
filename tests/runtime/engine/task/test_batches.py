"""Results do not depend on the division into batches, on crashes of workers, or on restored state."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.stores.backend import BatchedState, MemoryBackend
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.task.topologies import CLASSES, TOPOLOGIES
from tests.runtime.topology_runner import CACHED, NO_CACHE, TopologyRunner

Input = tuple[str | None, str | None, int]

INPUTS = st.lists(
    st.tuples(
        st.sampled_from(["k", "l", "", None]),
        st.sampled_from(["a", "b", "c", "", None]),
        st.integers(min_value=0, max_value=400).map(lambda tenths: 100 * tenths),
    ),
    max_size=25,
)
QUICK = settings(max_examples=max(4, settings().max_examples // 4))
EACH = pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=TOPOLOGIES)


def records(runner: TopologyRunner, inputs: Sequence[Input]) -> list[InputRecord]:
    return [runner.record("in", _bytes(key), _bytes(value), timestamp) for key, value, timestamp in inputs]


def fed(runner: TopologyRunner, inputs: Sequence[Input]) -> list[OutputRecord]:
    return runner.feed(*records(runner, inputs))


def one_by_one(topology: str, inputs: Sequence[Input]) -> list[OutputRecord]:
    runner = TopologyRunner(topology, NO_CACHE, CLASSES)
    for each in inputs:
        fed(runner, [each])
    return runner.all_outputs


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def by_topic(outputs: Sequence[OutputRecord]) -> dict[str, list[OutputRecord]]:
    grouped: dict[str, list[OutputRecord]] = {}
    for output in outputs:
        if "SUPPRESS" not in output[0]:  # their changelog depends on the ends of batches
            grouped.setdefault(output[0], []).append(output)
    return grouped


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_batches_and_new_workers_do_not_change_results(topology: str, inputs: list[Input], cut: int) -> None:
    runner = TopologyRunner(topology, NO_CACHE, CLASSES)
    fed(runner, inputs[:cut])
    runner.reopen()
    fed(runner, inputs[cut:])
    assert by_topic(runner.all_outputs) == by_topic(one_by_one(topology, inputs))


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_state_restored_from_changelogs_gives_the_same_results(
    topology: str, inputs: list[Input], cut: int
) -> None:
    runner = TopologyRunner(topology, NO_CACHE, CLASSES)
    for each in inputs[:cut]:
        fed(runner, [each])
    restore(runner)
    for each in inputs[cut:]:
        fed(runner, [each])
    assert by_topic(runner.all_outputs) == by_topic(one_by_one(topology, inputs))


@EACH
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_state_with_caches_is_restored(topology: str, inputs: list[Input], cut: int) -> None:
    straight, restored = (TopologyRunner(topology, CACHED, CLASSES) for _ in range(2))
    for runner in (straight, restored):
        fed(runner, inputs[:cut])
    restore(restored)
    for runner in (straight, restored):
        fed(runner, inputs[cut:])
    assert by_topic(restored.all_outputs) == by_topic(straight.all_outputs)


def restore(runner: TopologyRunner) -> None:
    """Restore new states from changelogs; clocks of operators are restored from offset metadata."""
    for program in runner.programs:
        restored = MemoryState()
        task = Task(program, 0, restored)
        for store in program.stores:
            changelog = program.changelog(store.name)
            if changelog is not None:
                logged = [output for output in runner.all_outputs if output[0] == changelog]
                task.restore(
                    changelog,
                    [(topic, 0, offset, time, key, value, headers)
                     for offset, (topic, _, key, value, time, headers) in enumerate(logged)],
                )  # fmt: skip
        restored.metadata.update(runner.states[program.name].metadata)
        restored.commit(runner.states[program.name].version - 1)
        runner.states[program.name] = restored
    runner.reopen()


class DeathError(Exception):
    """The worker dies."""


STEPS = ("processed", "prepared", "sent", "applied")


@EACH
@settings(max_examples=max(3, settings().max_examples // 10))
@given(inputs=INPUTS, crash_at=st.integers(0, 8))
def test_a_crash_between_any_two_steps_loses_and_duplicates_no_record(
    topology: str, inputs: list[Input], crash_at: int
) -> None:
    """Follow the protocol of a batch; a transaction is applied all or nothing."""
    straight = TopologyRunner(topology, NO_CACHE, CLASSES)
    if len(straight.programs) > 1:
        return  # each query follows the protocol separately
    batches = [inputs[at : at + 3] for at in range(0, len(inputs), 3)]
    expected = [output for batch in batches for output in fed(straight, batch)]
    for step in STEPS:
        assert _sent_with_a_crash(topology, step, batches, crash_at) == expected, step


def _sent_with_a_crash(
    topology: str, step: str, batches: Sequence[Sequence[Input]], crash_at: int
) -> list[OutputRecord]:
    """Return what is sent if the worker dies once, after a step of one of the batches."""
    sent: list[OutputRecord] = []
    version = 0
    backend = MemoryBackend()
    crashes = {crash_at}
    while version < len(batches):
        runner = TopologyRunner(topology, NO_CACHE, CLASSES, state=lambda: BatchedState(backend))
        (program,) = runner.programs
        state = runner.states[program.name]
        assert state.recover(version)
        task = runner.tasks[program.name] = Task(program, 0, state)
        runner.skip("in", 3 * version)
        try:
            outputs = task.process(records(runner, batches[version]), 0)
            _die(step, "processed", version, crashes)
            state.prepare(version)
            _die(step, "prepared", version, crashes)
            sent += outputs
            version += 1
            _die(step, "sent", version - 1, crashes)
            state.commit(version - 1)
            _die(step, "applied", version - 1, crashes)
        except DeathError:
            continue
    return sent


def _die(wanted: str, step: str, batch: int, crashes: set[int]) -> None:
    if step == wanted and batch in crashes:
        crashes.remove(batch)
        raise DeathError


ONE_KEY_ONE_UPDATE = {"count", "reduce", "tumbling", "hopping", "table filter", "unlimited"}


@pytest.mark.parametrize("name", sorted(ONE_KEY_ONE_UPDATE))
@QUICK
@given(inputs=INPUTS, cut=st.integers(0, 25))
def test_a_cache_forwards_the_last_update_of_each_key_per_batch(
    name: str, inputs: list[Input], cut: int
) -> None:
    cached = TopologyRunner(TOPOLOGIES[name], CACHED, CLASSES)
    plain = TopologyRunner(TOPOLOGIES[name], NO_CACHE, CLASSES)
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
def test_tables_are_the_same_with_and_without_a_cache(name: str, inputs: list[Input], cut: int) -> None:
    if "on close" in name or name.startswith(("session", "sliding")):
        # Without a cache, windows are lost that expire with the record that closes them, and late records do
        # not find those that have expired.
        inputs = sorted(inputs, key=lambda each: each[2])
    cached = TopologyRunner(TOPOLOGIES[name], CACHED, CLASSES)
    plain = TopologyRunner(TOPOLOGIES[name], NO_CACHE, CLASSES)
    for part in (inputs[:cut], inputs[cut:]):
        fed(plain, part)
        fed(cached, part)
    ends, expected = _present(cached.all_outputs), _present(plain.all_outputs)
    if "on close" in name:
        assert expected.items() <= ends.items()
    else:
        assert ends == expected


def _present(outputs: Sequence[OutputRecord]) -> dict[bytes | None, bytes | None]:
    """Remove empty groups: with a cache, a group created and deleted in a batch is never forwarded."""
    nothing = (None, b"", bytes(8))
    return {key: value for key, (value, _) in _last(outputs).items() if value not in nothing}


def test_very_deep_topologies_can_be_processed() -> None:
    steps = "- mapValues: {value: value + '.'}\n" * 1500
    runner = TopologyRunner(f"- stream: {{topic: in}}\n{steps}- to: {{topic: out}}\n")
    (output,) = runner.feed(runner.record("in", b"k", b"", 1))
    assert output[3] == b"." * 1500
