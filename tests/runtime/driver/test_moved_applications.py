"""Which applications can move their state, and what `headwater processors status` reports."""

from collections.abc import Mapping

import pytest

from infra.compiler import build_nodes, compile_document
from infra.model.problems import ProblemCode, ProblemsError
from infra.spec import load_text
from spark_jobs.runtime.driver.processor_move.application_state import ApplicationState, PartStatus
from spark_jobs.runtime.driver.processor_move.moves import Committed
from spark_jobs.runtime.engine.program import build_programs
from spark_jobs.runtime.engine.scaling.marks import MoveMark, MovePhase
from spark_jobs.runtime.worker.offset_metadata import OffsetMetadata
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
  - process: {from: read, class: "module:Seen", stores: [seen]}
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


def refusals(state: ApplicationState) -> list[str]:
    with pytest.raises(ProblemsError) as raised:
        state.move()
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.STATE_NOT_MOVABLE}
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


@pytest.mark.parametrize("processors", [1, 3, 6])
def test_only_doubled_numbers_are_possible(processors: int) -> None:
    assert refusals(state_of(processors)) == [f"app cannot have {processors} instead of 2 processors."]


def test_there_must_be_as_many_partitions() -> None:
    assert refusals(state_of(8, {**LIVE, REPARTITION: 4})) == ["app has fewer partitions than 8 processors."]


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
        assert refusals(state_of(other, expanded, mark)) == [
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


def test_stores_of_users_processors_cannot_move() -> None:
    live = {**LIVE, "app-seen-changelog": 2}
    assert refusals(state_of(4, live, more=_PROCESS)) == [
        "The state of app cannot move: the entries of store seen have no known keys."
    ]


def test_the_status_shows_each_part() -> None:
    status = state_of(4).status()
    assert (status.application, status.declared, status.move) == ("app", 4, None)
    assert status.parts == (PartStatus("0", 2, {"in": 8}), PartStatus("1", 2, {REPARTITION: 8}))
    assert status.needs_move
    without = {topic: count for topic, count in LIVE.items() if topic not in (COUNTS, BY_VALUE)}
    assert not state_of(4, without).status().needs_move
