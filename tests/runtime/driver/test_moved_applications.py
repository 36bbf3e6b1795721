"""Which applications can move their state, and what `headwater processors status` reports."""

from collections.abc import Mapping

import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.model.offset_metadata import MoveMark, MovePhase, OffsetMetadata
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.processor_move.application_state import (
    AddedProcessor,
    ApplicationState,
    PartStatus,
)
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.engine.program import build_programs
from tests.runtime.driver.memory_move import MemoryCluster

COUNTS, BY_VALUE, REPARTITION = "app-counts-changelog", "app-by-value-changelog", "app-by-value-repartition"
LIVE = {"in": 8, "out": 8, REPARTITION: 8, COUNTS: 2, BY_VALUE: 2}
_DOCUMENT = """
application: {id: app, processors: PROCESSORS, config: {processing.guarantee: exactly_once_v2, CONFIG}}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}, as: read}
  - groupByKey:
  - count: {materialized: counts}
  - selectKey: {from: read, key: value}
  - groupByKey:
  - count: {materialized: by-value}
"""
_PROCESS = """
  - addStateStore: {name: seen, kind: keyValue}
  - addStateStore: {name: scores, kind: keyValue}
  - process: {from: read, class: "module:Seen", stores: [seen]}
  - selectKey: {from: read, key: value}
  - repartition: {name: by-score}
  - process: {class: "module:Scores", stores: [scores]}
"""


def state_of(
    processors: int,
    live: Mapping[str, int] = LIVE,
    mark: MoveMark | None = None,
    config: str = "client.id: a",
    more: str = "",
) -> ApplicationState:
    text = _DOCUMENT.replace("PROCESSORS", str(processors)).replace("CONFIG", config) + more
    loaded = load_text(text, "app.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, live)
    cluster = MemoryCluster({})
    if mark is not None:
        cluster.offsets["in", 5] = Committed(7, OffsetMetadata(3).encode(0, {}, 1, mark))
    programs = build_programs(document, build_nodes(document), compiled)
    return ApplicationState(document, compiled, programs, live, cluster)


def refusals(state: ApplicationState, code: ProblemCode = ProblemCode.STATE_NOT_MOVABLE) -> list[str]:
    with pytest.raises(ProblemsError) as raised:
        state.move()
    assert {problem.code for problem in raised.value.problems} == {code}
    assert all(problem.why and problem.fix for problem in raised.value.problems)
    return [problem.summary for problem in raised.value.problems]


@pytest.mark.parametrize("processors", [4, 8])
def test_a_move_has_all_stores_and_inputs(processors: int) -> None:
    move = state_of(processors).move()
    assert move is not None
    assert (move.application, move.before, move.after) == ("app", 2, processors)
    assert [(part.subtopology, part.inputs) for part in move.parts] == [
        ("0", {"in": 8}),
        ("1", {REPARTITION: 8}),
    ]
    assert move.changelogs == [COUNTS, BY_VALUE]
    assert move.task_name(move.parts[1], 1) == "app-1-1"


def test_there_is_nothing_to_move_to_the_present_number() -> None:
    state = state_of(2)
    assert state.move() is None
    assert not state.status().needs_move


def test_there_can_be_fewer_down_to_the_initial_number_or_its_halves() -> None:
    move = state_of(1).move()
    assert move is not None
    assert (move.before, move.after, move.widest, move.new.recorded_count) == (2, 1, 2, 1)
    three = {**LIVE, "in": 6, "out": 6, REPARTITION: 6, COUNTS: 3, BY_VALUE: 3}
    few = refusals(state_of(2, three), ProblemCode.PROCESSOR_COUNT)
    assert few == ["app cannot have 2 instead of 3 processors."]


def test_the_committed_number_is_that_of_the_state() -> None:
    """8 changelog partitions are left of 8 processors; a store that was added later has fewer."""
    live = {**LIVE, COUNTS: 8, BY_VALUE: 4}
    for processors, expected in ((3, None), (4, (3, 4, 2)), (8, (3, 8, 2)), (2, (3, 2, 2))):
        state = state_of(processors, live)
        assert isinstance(state.cluster, MemoryCluster)
        state.cluster.offsets["in", 6] = Committed(7, OffsetMetadata(3).encode(0, {}, 2, initial=2, count=3))
        assert {part.processors for part in state.status().parts} == {3}
        assert state.status().needs_move == (processors != 3)
        move = state.move()
        assert (None if move is None else (move.before, move.after, move.old.initial)) == expected
    lost = state_of(4, {**live, BY_VALUE: 2})
    assert isinstance(lost.cluster, MemoryCluster)
    lost.cluster.offsets["in", 6] = Committed(7, OffsetMetadata(3).encode(0, {}, 2, initial=2, count=3))
    summary = "The changelog topics of app do not have the same number of partitions."
    assert refusals(lost) == [summary]


@pytest.mark.parametrize(("processors", "committed"), [(3, 2), (6, 4), (7, 4), (8, 8)])
def test_the_initial_number_follows_from_the_partitions(processors: int, committed: int) -> None:
    """8 partitions: it is 1, 2, 4 or 8, or they were added in another way than by doubling."""
    move = state_of(processors).move()
    assert move is not None
    assert (move.old.initial, move.new.initial) == (2, committed)
    narrow = {**LIVE, "in": 6, "out": 6, REPARTITION: 6}
    three = state_of(4, {**narrow, COUNTS: 3, BY_VALUE: 3}).move()
    assert three is not None
    assert (three.old.initial, three.new.initial) == (3, 3)


def test_the_initial_number_that_is_committed_decides() -> None:
    """12 partitions of 4 processors: 3 were 3 at first, or 4 partitions were expanded to 12."""
    live = {"in": 12, "out": 12, REPARTITION: 12, COUNTS: 4, BY_VALUE: 4}
    move = state_of(6, live).move()
    assert move is not None
    assert (move.old.initial, move.new.initial) == (3, 6)
    for text, is_refused in (
        (OffsetMetadata(3).encode(0), True),
        (OffsetMetadata(3).encode(0, initial=3), False),
    ):
        state = state_of(6, live)
        assert isinstance(state.cluster, MemoryCluster)
        state.cluster.offsets["in", 0] = Committed(7, text)
        if is_refused:
            summary = "The inputs of app have a partition count that moves keys away from their state."
            assert refusals(state) == [summary]
        else:
            assert state.move() == move


def test_linear_hash_must_have_the_initial_number_of_the_state() -> None:
    linear = "static.partitioner.class: linear-hash, static.partitioner.initial.partitions: INITIAL"
    live = {"in": 9, "out": 9, REPARTITION: 9, COUNTS: 6, BY_VALUE: 6}
    for initial in (2, 4):
        state = state_of(7, live, config=linear.replace("INITIAL", str(initial)))
        assert isinstance(state.cluster, MemoryCluster)
        state.cluster.offsets["in", 0] = Committed(7, OffsetMetadata(3).encode(0, initial=4))
        move = state.move()
        assert move is not None
        assert (move.before, move.after, move.new.initial) == (6, 7, 4)
    state = state_of(7, live, config=linear.replace("INITIAL", "3"))
    assert isinstance(state.cluster, MemoryCluster)
    state.cluster.offsets["in", 0] = Committed(7, OffsetMetadata(3).encode(0, initial=4))
    assert refusals(state) == ["The state of app is partitioned with the initial number 4."]


def test_there_must_be_as_many_partitions() -> None:
    narrow = refusals(state_of(8, {**LIVE, REPARTITION: 4}), ProblemCode.PROCESSOR_COUNT)
    assert narrow == ["app has fewer partitions than 8 processors."]


def test_changelogs_must_have_the_same_count() -> None:
    summary = "The changelog topics of app do not have the same number of partitions."
    assert refusals(state_of(4, {**LIVE, COUNTS: 4})) == [summary]
    without = {topic: count for topic, count in LIVE.items() if topic != COUNTS}
    assert refusals(state_of(4, without)) == [summary]


def test_a_move_continues_to_its_number_only() -> None:
    mark = MoveMark(MovePhase.COPY, 2, 4)
    expanded = {**LIVE, COUNTS: 4}
    move = state_of(4, expanded, mark).move()
    assert move is not None
    assert (move.before, move.after) == (2, 4)
    for other in (2, 8):
        assert refusals(state_of(other, expanded, mark), ProblemCode.MOVE_INCOMPLETE) == [
            "A move of app from 2 to 4 processors is not complete."
        ]
    assert state_of(4, {**expanded, BY_VALUE: 4}, mark).status().needs_move


def test_keys_of_other_partitioners_cannot_move() -> None:
    config = "static.partitioner.class: initial-hash, static.partitioner.initial.partitions: 2"
    assert refusals(state_of(4, config=config)) == [
        "The state of app cannot move: its keys are partitioned by initial-hash."
    ]
    linear = "static.partitioner.class: linear-hash, static.partitioner.initial.partitions: 4"
    assert state_of(4, config=linear).move() is not None


def test_stores_of_users_processors_move_only_if_they_are_keyed_by_record() -> None:
    live = {**LIVE, "app-seen-changelog": 2, "app-scores-changelog": 2}
    live["app-by-score-repartition"] = 8
    assert refusals(state_of(4, live, more=_PROCESS)) == [
        "The state of app cannot move: the entries of store seen have no known keys.",
        "The state of app cannot move: the entries of store scores have no known keys.",
    ]
    move = state_of(4, live, more=_PROCESS.replace("name: seen", "name: seen, keyed: record"))
    assert refusals(move) == ["The state of app cannot move: the entries of store scores have no known keys."]
    both = state_of(4, live, more=_PROCESS.replace("kind: keyValue", "keyed: record")).move()
    assert both is not None
    assert both.changelogs == [COUNTS, "app-seen-changelog", BY_VALUE, "app-scores-changelog"]


def test_the_status_shows_each_part() -> None:
    status = state_of(4).status()
    assert (status.application, status.declared, status.move) == ("app", 4, None)
    added = AddedProcessor(2, 0, (2, 6)), AddedProcessor(3, 1, (3, 7))
    assert status.parts == (PartStatus("0", 2, {"in": 8}, added), PartStatus("1", 2, {REPARTITION: 8}, added))
    assert status.needs_move
    without = {topic: count for topic, count in LIVE.items() if topic not in (COUNTS, BY_VALUE)}
    assert not any(part.added for part in (*state_of(2).status().parts, *state_of(16).status().parts))
    assert not state_of(4, without).status().needs_move
