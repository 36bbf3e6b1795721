"""The input of a query with processors, while partitions are added."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaException

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.offset_metadata import BATCH_ID, LINEAGE_KEY, MoveMark, MovePhase, OffsetMetadata
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.input.expansion import InputExpansion, check_no_move, check_processors
from headwater_spark.driver.layout import Layout, OffsetReset, ResetKind
from headwater_spark.driver.queries.known_commits import KnownCommits
from headwater_spark.driver.queries.query_input import QueryServices
from headwater_spark.driver.queries.specs import QuerySpec, QuerySpecs
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker.messages import BatchResult

_DOCUMENT = """
application: {id: app, config: {processing.guarantee: exactly_once_v2, auto.offset.reset: latest}}
topology:
  - stream: {topic: in, serdes: {key: string, value: string}, as: read}
  - groupByKey:
  - count: {materialized: counts}
  - selectKey: {from: read, key: value}
  - groupByKey:
  - count: {materialized: by-value}
  - stream: {topic: passed, serdes: {key: string, value: string}}
  - to: {topic: out}
"""
REPARTITION = "app-by-value-repartition"


def layout_of(partitions: int, processors: int | None = 2, repartition: int = 2) -> Layout:
    document = load_text(_DOCUMENT, "app.yaml").documents[0]
    document = attrs.evolve(document, application=attrs.evolve(document.application, processors=processors))
    counts = {"in": partitions, "passed": 4, "out": 2, REPARTITION: repartition}
    compiled = compile_document(document, counts)
    return Layout().updated(
        compiled, build_programs(document, build_nodes(document), compiled), counts, dict.fromkeys(counts, "")
    )


def reading(topic: str) -> str:
    layout = layout_of(2)
    (name,) = (name for name in layout.queries if topic in layout.topics(name))
    return name


@attrs.define
class Offsets:
    """End offsets on a cluster: each request for them finds one more record in every partition."""

    requests: int = 0
    unstable: bool = False
    processed: dict[TopicPartition, int] = attrs.field(factory=dict)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.requests += 1
        return dict.fromkeys(partitions, self.requests)

    def stable_end_offsets(
        self, partitions: Sequence[TopicPartition], _seconds: float
    ) -> dict[TopicPartition, int]:
        if self.unstable:
            raise KafkaException("transactions are open")
        return self.end_offsets(partitions)

    def committed_processors(self, _: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self.processed


@attrs.define
class Query:
    """The expansion of the query that reads `topic`."""

    topic: str
    layout: Layout
    offsets: Offsets = attrs.field(factory=Offsets)
    checks: int = 0
    expansion: InputExpansion = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.expansion = InputExpansion(
            subtopology=reading(self.topic),
            processors=Processors(2, 2),
            layout=lambda: self.layout,
            offsets=self.offsets,  # type: ignore[arg-type]
            request_check=self._check,
        )

    def _check(self) -> None:
        self.checks += 1


def test_stateful_sub_topologies_have_processors_and_stateless_ones_a_task_per_partition() -> None:
    layout = layout_of(8)
    stateful, stateless = reading("in"), reading("passed")
    assert layout.processors[stateful] == Processors(2, 2)
    assert stateless not in layout.processors
    assert (layout.parallelism(stateful), layout.parallelism(stateless)) == (2, 4)
    assert (layout.is_expanded(stateful), layout.is_expanded(stateless)) == (True, False)
    assert not layout_of(2).is_expanded(stateful)
    assert not layout_of(8, None).processors


def test_no_record_of_an_added_partition_is_skipped() -> None:
    resets = layout_of(4).offset_resets(reading("in"))
    latest, first = OffsetReset(ResetKind.LATEST), OffsetReset(ResetKind.EARLIEST)
    assert [resets["in", each] for each in range(4)] == [latest, latest, first, first]


def test_batches_are_read_as_before_until_a_partition_is_added() -> None:
    query = Query("in", layout_of(2))
    assert not query.expansion.applies_to({("in", 0): 5, ("in", 1): 5})
    assert query.expansion.applies_to(None), "a remote checkpoint"
    assert query.checks == 0
    assert query.expansion.applies_to({("in", 0): 5, ("in", 1): 5, ("in", 2): 1})
    assert query.checks == 1
    query.layout = layout_of(4)
    assert query.expansion.applies_to({("in", 0): 5, ("in", 1): 5})


def test_a_topic_check_is_requested_once_while_a_partition_is_unknown() -> None:
    query = Query("in", layout_of(2))
    for _ in range(3):
        query.expansion.readable_ends({("in", 2): 1}, {})
    assert query.checks == 1


def test_ends_of_parents_are_read_after_those_of_their_children() -> None:
    query = Query("in", layout_of(8))
    query.offsets.processed = {("in", each): each % 2 for each in range(8)}
    ends = query.expansion.readable_ends({}, {})
    assert [ends["in", each] for each in range(8)] == [3, 3, 2, 2, 2, 2, 1, 1]


def test_children_wait_while_a_repartition_topic_has_open_transactions() -> None:
    query = Query(REPARTITION, layout_of(2, repartition=4))
    query.offsets.processed = {(REPARTITION, each): each % 2 for each in range(4)}
    assert set(query.expansion.readable_ends({}, {})) == {(REPARTITION, each) for each in range(4)}
    query.offsets.unstable = True
    assert set(query.expansion.readable_ends({}, {})) == {(REPARTITION, 0), (REPARTITION, 1)}


def test_released_partitions_are_read_again_after_a_restart() -> None:
    query = Query("in", layout_of(4))
    assert ("in", 2) not in query.expansion.readable_ends({}, {})
    query.offsets.processed = {("in", each): each % 2 for each in range(4)}
    assert ("in", 2) not in query.expansion.readable_ends({}, {})
    query.restart()
    assert ("in", 2) in query.expansion.readable_ends({}, {})


@pytest.mark.parametrize(
    ("processors", "processed", "expected"),
    [
        (2, {("in", 2): 0, ("in", 3): 1}, ""),
        (None, {("in", 2): 2}, ""),
        (None, {("in", 2): 0}, "Partition 2 of in was processed by processor 0, not 2."),
        (2, {("in", 2): 2}, "Partition 2 of in was processed by processor 2, not 0."),
    ],
)
def test_a_partition_stays_with_the_processor_that_has_its_state(
    processors: int | None, processed: dict[TopicPartition, int], expected: str
) -> None:
    layout = layout_of(4, processors)
    found = []
    try:
        check_processors("app", layout, reading("in"), processed)
    except ProblemsError as error:
        found = [(problem.code, problem.summary) for problem in error.problems]
    assert found == ([(ProblemCode.INVALID_CONFIG, expected)] if expected else [])


def test_a_document_may_accept_to_lose_state() -> None:
    layout, name = layout_of(4, None), reading("in")
    program = layout.programs[name]
    setup = attrs.evolve(program.application.setup, allow_unsafe_expansion=True)
    accepting = attrs.evolve(program, application=attrs.evolve(program.application, setup=setup))
    check_processors("app", attrs.evolve(layout, programs={name: accepting}), name, {("in", 2): 0})
    with pytest.raises(ProblemsError):
        check_processors("app", layout, name, {("in", 2): 0})


def test_an_application_does_not_start_while_its_state_moves() -> None:
    check_no_move("app", None)
    with pytest.raises(ProblemsError) as raised:
        check_no_move("app", MoveMark(MovePhase.COPY, 4, 8))
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.MOVE_INCOMPLETE
    assert "`processors: 8`" in problem.fix
    assert "`headwater processors move --offline`" in problem.fix


class Announced:
    """The offsets of an application whose changelog topics announce an expansion."""

    def move_mark(self, partitions: Sequence[TopicPartition]) -> MoveMark | None:
        is_announced = ("app-counts-changelog", 0) in partitions
        return MoveMark(MovePhase.CATCH_UP, 2, 4) if is_announced else None

    def committed_processors(self, _: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        raise StartedError

    def commits(
        self,
        partitions: Sequence[TopicPartition],  # noqa: ARG002
        seconds: float = 0.0,  # noqa: ARG002
    ) -> dict[TopicPartition, tuple[int, str]]:
        return {}

    def commit_again(self, commits: dict[TopicPartition, tuple[int, str]]) -> None: ...


class Replaced(Announced):
    """The offsets of an application, one of which an outdated worker has committed."""

    def __init__(self) -> None:
        text = OffsetMetadata(2, {BATCH_ID: 1, LINEAGE_KEY: 7}).encode(-1)
        self.committed = {("in", 0): (20, text)}
        self.reads = 0

    def move_mark(self, _: Sequence[TopicPartition]) -> MoveMark | None:
        return None

    def commits(
        self,
        partitions: Sequence[TopicPartition],
        seconds: float = 0.0,  # noqa: ARG002
    ) -> dict[TopicPartition, tuple[int, str]]:
        self.reads += 1
        return {each: self.committed[each] for each in partitions if each in self.committed}

    def written_end_offsets(self, _: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def committed_processors(self, _: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def start_offsets(self, *arguments: Any) -> dict[TopicPartition, int]:  # noqa: ANN401
        return dict(arguments[-1])

    def commit_again(self, commits: dict[TopicPartition, tuple[int, str]]) -> None:
        self.committed |= commits


class StartedError(Exception):
    """The query was not refused because of a mark."""


def spec_of(
    layout: Layout, subtopology: str, offsets: Announced | None = None, *, exactly_once: bool = True
) -> QuerySpec:
    unused: Any = None
    connection = Connection(bootstrap_servers=("localhost:9092",))
    services = QueryServices(
        application="app",
        spark=unused,
        settings=RunSettings(connection=connection, checkpoint="", state_folder=Path()),
        offsets=offsets or Announced(),  # type: ignore[arg-type]
        rounds=unused,
        threads=unused,
        exceptions=unused,
        brokers=unused,
        exactly_once=exactly_once,
        client=ActiveClient(connection, "app", "client", None),
    )
    specs = QuerySpecs(services=services, programs=unused)
    specs.layout = layout
    return specs.spec(subtopology)


def test_an_announced_expansion_refuses_a_task_for_each_partition() -> None:
    """With `follow`, the partitions of added processors would be used, but they are not complete."""
    with pytest.raises(ProblemsError) as raised:
        spec_of(layout_of(4, None), reading("in")).input.create_source({})
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.MOVE_INCOMPLETE]
    with pytest.raises(StartedError):
        spec_of(layout_of(4, 2), reading("in")).input.create_source({})
    with pytest.raises(StartedError):
        spec_of(layout_of(4, None), reading("passed")).input.create_source({})


def test_a_query_that_is_started_again_does_not_begin_at_the_commit_of_an_outdated_worker() -> None:
    last = 50, OffsetMetadata(5, {BATCH_ID: 2, LINEAGE_KEY: 7}).encode(-1)
    offsets, known = Replaced(), KnownCommits()
    known.add([BatchResult(partition=0, committed=(("in", 0, *last),))])
    spec = spec_of(layout_of(4, None), reading("in"), offsets, exactly_once=False)
    source, committed = spec.input.create_source({}, known)
    assert source.start_offsets == {("in", 0): last[0]}
    assert offsets.committed == committed == {("in", 0): last}
    assert offsets.reads == 1, "a commit between two reads would be taken for the right one"
