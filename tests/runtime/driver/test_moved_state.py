"""KIP-287: stores of each type give the same results before and after their entries move, without Spark."""

from collections.abc import Mapping
from functools import cache

import pytest

from headwater.model.problems import ProblemsError
from headwater_spark.engine.stores.backend import BatchedState
from tests.runtime.driver.moving_application import (
    KEYS,
    ORDERS,
    OUT,
    TOPOLOGIES,
    Application,
    closing,
    results_of,
    sent,
)

_SEEN = f"""
{ORDERS}
- process:
    class: tests.runtime.visiting:CLASS
    stores: [{{name: seen, keyed: record, serdes: {{key: KEY, value: string}}}}]
{OUT}
"""


@cache
def _unmoved(name: str, processors: int) -> Application:
    """Return an application that has processed all records, and whose state has not moved."""
    app = Application(TOPOLOGIES[name], processors)
    app.process(sent(0, 120))
    app.process(closing(app.owners))
    return app


@pytest.mark.parametrize("keep", [False, True], ids=["restored", "with local state"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_results_are_those_of_a_run_without_a_move(name: str, *, keep: bool) -> None:
    unmoved, moved = _unmoved(name, 2), Application(TOPOLOGIES[name], 2)
    moved.process(sent(0, 60))
    moved.move(4, keep=keep)
    moved.process(sent(60, 90))
    moved.move(8, keep=keep)
    moved.process(sent(90, 120))
    moved.process(closing(moved.owners))
    assert len(unmoved.results) >= len(KEYS) - 1
    assert results_of(moved) == results_of(unmoved)


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(False, id="restored"),
        # 2 → 3 with local state: `test_results_are_the_same_with_fewer_processors`
        pytest.param(True, id="with local state", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_results_are_the_same_with_numbers_between_doublings(name: str, *, keep: bool) -> None:
    """2 → 3 → 4 → 6 processors for 2 → 4 → 4 → 8 partitions."""
    unmoved, moved = _unmoved(name, 2), Application(TOPOLOGIES[name], 2)
    steps = ((0, 40, 3, 4), (40, 70, 4, 4), (70, 90, 6, 8))
    for first, last, processors, partitions in steps:
        moved.process(sent(first, last))
        moved.move(processors, keep=keep, partitions=partitions)
    moved.process(sent(90, 120))
    moved.process(closing(moved.owners))
    assert len(unmoved.results) >= len(KEYS) - 1
    assert results_of(moved) == results_of(unmoved)


@pytest.mark.parametrize(
    "keep",
    [
        # 2 → 3 restored: the test before
        pytest.param(False, id="restored", marks=pytest.mark.soak),
        pytest.param(True, id="with local state"),
    ],
)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_results_are_the_same_with_fewer_processors(name: str, *, keep: bool) -> None:
    """4 → 2 → 3 → 2 processors for 4 partitions. Windows that are emitted on close may be so again."""
    unmoved, moved = _unmoved(name, 4), Application(TOPOLOGIES[name], 4)
    for first, last, processors in ((0, 40, 2), (40, 70, 3), (70, 90, 2)):
        moved.process(sent(first, last))
        moved.move(processors, keep=keep, partitions=4)
    moved.process(sent(90, 120))
    moved.process(closing(unmoved.owners))
    assert len(unmoved.results) >= len(KEYS) - 1
    choose = set if name.endswith("on close") else list
    found, expected = (
        {key: sorted(choose(values), key=str) for key, values in app.results.items()}
        for app in (moved, unmoved)
    )
    assert found == expected


@pytest.mark.parametrize("keep", [False, True], ids=["restored", "with local state"])
def test_the_sizes_of_buffers_are_those_of_their_entries(*, keep: bool) -> None:
    app = Application(TOPOLOGIES["limited suppression"], 2)
    app.process(sent(0, 60))
    app.move(4, keep=keep)
    (buffer,) = (store.name for store in app.programs[0].stores if "SUPPRESS" in store.name)
    sizes = [
        (state.metadata.get(f"{buffer}/records", 0), len(list(state.store(buffer).range(b"e", b"f"))))
        for state in app.states()
    ]
    assert all(records == entries for records, entries in sizes), sizes
    assert sum(records for records, _ in sizes) == len(KEYS)


@pytest.mark.parametrize("processors", [3, 6, 8])
def test_responses_of_foreign_keys_go_to_the_new_processors(processors: int) -> None:
    """Only customers change after the move: their subscriptions were written before it."""
    unmoved, moved = (Application(TOPOLOGIES["foreign keys"], 2) for _ in range(2))
    for app in (unmoved, moved):
        app.process(sent(0, 60))
    moved.move(processors, keep=False, partitions=8)
    for app in (unmoved, moved):
        app.results.clear()
        app.process(("customers", key, "renamed", 100) for key in KEYS)
    assert len(unmoved.results) == len(KEYS)
    assert results_of(moved) == results_of(unmoved)


@pytest.mark.parametrize("keep", [False, True], ids=["restored", "with local state"])
def test_added_processors_punctuate_when_those_do_that_had_their_keys(*, keep: bool) -> None:
    app = Application(_SEEN.replace("CLASS", "Hourly").replace("KEY", "string"), 2)
    app.process(sent(0, 60))
    before = [_punctuation_times(state) for state in app.states()]
    assert [len(times) for times in before] == [2, 2]
    assert before[0] != before[1]
    app.move(4, keep=keep)
    app.process(("orders", f"k{each}", "", 60) for each in range(30))
    assert [_punctuation_times(state) for state in app.states()] == before * 2


def _punctuation_times(state: BatchedState) -> Mapping[str, int]:
    return {name: time for name, time in state.metadata.items() if "/schedule/" in name}


@pytest.mark.parametrize(("processor", "key"), [("KeysByValue", "string"), ("KeysAsNumbers", "integer")])
def test_other_keys_than_declared_are_found_before_anything_moves(processor: str, key: str) -> None:
    """A store is keyed by record, but entries are written under another key, or with another serde."""
    app = Application(_SEEN.replace("CLASS", processor).replace("KEY", key), 2)
    app.process(sent(0, 60))
    before = {topic: [list(each) for each in found] for topic, found in app.cluster.topics.items()}
    with pytest.raises(ProblemsError) as raised:
        app.move(4, keep=False)
    [problem] = raised.value.problems
    assert problem.summary.startswith("Store seen is not keyed by record: ")
    assert problem.location is not None
    assert app.cluster.topics == before
