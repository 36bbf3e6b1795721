"""One task's batches on a real broker, without Spark: what is committed, left out, restored, taken back."""

import shutil
import threading
from collections.abc import Callable
from multiprocessing.connection import Client
from pathlib import Path

import attrs
import pytest

from infra.compiler import build_nodes, compile_document
from infra.model.nodes import SinkNode
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.engine.program import PartitionRule, SubtopologyProgram, build_programs
from spark_jobs.runtime.engine.program.partitioning import SinkPartitioning
from spark_jobs.runtime.engine.records import InputRecord
from spark_jobs.runtime.worker.local_state import LocalState
from spark_jobs.runtime.worker.messages import WorkOrder
from spark_jobs.runtime.worker.task_input import Records
from spark_jobs.runtime.worker.task_owner import _Home
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = pytest.mark.broker

_TOPOLOGY = """
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: SINK, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Scene:
    """One sub-topology with a store, its topics, and the order for its batches."""

    topics: Topics
    order: WorkOrder
    source: str
    sink: str

    def record(self, offset: int, key: bytes) -> InputRecord:
        return (self.source, 0, offset, 1_700_000_000_000 + offset, key, b"v", ())

    def counts(self) -> list[int]:
        return [int.from_bytes(record[5] or b"", "big") for record in self.topics.get(self.sink)]

    @property
    def state(self) -> Path:
        return self.order.state_folder / "0_0"


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def scene(
    request: pytest.FixtureRequest, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Scene:
    id_ = unique("work")
    source, sink = f"in-{id_}", f"out-{id_}"
    text = _TOPOLOGY.replace("SOURCE", source).replace("SINK", sink)
    config = "{statestore.cache.max.bytes: 0}"
    loaded = load_text(f"application: {{id: {id_}, config: {config}}}\ntopology:{text}", "test.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, {source: 1, sink: 1})
    (program,) = build_programs(document, build_nodes(document), compiled)
    topics = Topics(kafka.bootstrap_servers)
    topics.create({source: 1, sink: 1, f"{id_}-counts-changelog": 1})
    order = WorkOrder(
        application=id_,
        group=id_,
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        program=program,
        state_folder=tmp_path,
        counts={source: 1},
        exactly_once=request.param,
    )
    return Scene(topics, order, source, sink)


def test_what_was_committed_is_left_out_of_a_batch_that_comes_again(scene: Scene) -> None:
    home = _Home()
    first = [scene.record(0, b"a"), scene.record(1, b"a")]
    assert home.work(scene.order, 0, Records(first), tick=False).read == 2
    again = home.work(scene.order, 0, Records([*first, scene.record(2, b"a")]), tick=False)
    assert (again.read, again.skipped) == (1, 2)
    assert scene.counts() == [1, 2, 3]


def test_another_process_goes_on_where_the_first_one_stopped(scene: Scene) -> None:
    first, second = _Home(), _Home()
    first.work(scene.order, 0, Records([scene.record(0, b"a")]), tick=False)
    outcome = second.work(scene.order, 0, Records([scene.record(0, b"a"), scene.record(1, b"a")]), tick=False)
    assert (outcome.read, outcome.skipped, outcome.restored) == (1, 1, 0)
    assert scene.counts() == [1, 2]


def test_what_a_caller_that_died_has_sent_is_done_all_the_same(scene: Scene) -> None:
    """As when Spark ends a Python worker whose task it has cancelled."""
    home = _Home()
    home.work(scene.order, 0, Records([scene.record(0, b"a")]), tick=False)
    address, _, key = home._holder.partition("\n")
    with Client(address, authkey=key.encode()) as caller:
        caller.send((scene.order, 0, Records([scene.record(1, b"a")]), False))
    assert until(lambda: scene.counts() == [1, 2], 60)
    assert until(lambda: not any("_answer" in each.name for each in threading.enumerate()), 60)


def test_lost_state_is_restored_from_the_changelog(scene: Scene) -> None:
    home = _Home()
    home.work(scene.order, 0, Records([scene.record(0, b"a"), scene.record(1, b"b")]), tick=False)
    _end(home)
    shutil.rmtree(scene.state)
    outcome = _Home().work(scene.order, 0, Records([scene.record(2, b"a")]), tick=False)
    assert outcome.restored == 2
    assert scene.counts() == [1, 1, 2]


def test_state_that_fell_behind_gets_only_what_it_lacks(scene: Scene, tmp_path: Path) -> None:
    """As when a task was on another machine meanwhile."""
    here = _Home()
    here.work(scene.order, 0, Records([scene.record(0, b"a"), scene.record(1, b"b")]), tick=False)
    _end(here)
    there = _Home()
    away = attrs.evolve(scene.order, state_folder=tmp_path / "elsewhere")
    assert there.work(away, 0, Records([scene.record(2, b"a")]), tick=False).restored == 2
    _end(there)
    assert _Home().work(scene.order, 0, Records([scene.record(3, b"a")]), tick=False).restored == 1
    assert scene.counts() == [1, 1, 2, 3]


def test_killed_after_the_commit_the_prepared_batch_is_applied(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _Home()
    home.work(scene.order, 0, Records([scene.record(0, b"a")]), tick=False)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalState, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            home.work(scene.order, 0, Records([scene.record(1, b"a")]), tick=False)
    outcome = _Home().work(
        scene.order, 0, Records([scene.record(1, b"a"), scene.record(2, b"a")]), tick=False
    )
    assert (outcome.read, outcome.skipped, outcome.restored) == (1, 1, 0)
    assert scene.counts() == [1, 2, 3]


def test_killed_before_the_commit_nothing_has_happened(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    if not scene.order.exactly_once:
        pytest.skip("at least once: what was sent stays")
    home = _Home()
    home.work(scene.order, 0, Records([scene.record(0, b"a")]), tick=False)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("spark_jobs.runtime.worker.session.Session.commit", killed)
        with pytest.raises(KeyboardInterrupt):
            home.work(scene.order, 0, Records([scene.record(1, b"a")]), tick=False)
    assert scene.counts() == [1]
    outcome = _Home().work(scene.order, 0, Records([scene.record(1, b"a")]), tick=False)
    assert (outcome.read, outcome.skipped) == (1, 0)
    assert scene.counts() == [1, 2]


def test_a_record_that_wants_a_partition_waits_and_is_not_lost(scene: Scene) -> None:
    """KIP-878: `TaskMigratedException`; the batch is tried again."""
    order = attrs.evolve(scene.order, program=_ranged(scene.order.program).with_counts({scene.sink: 1}))
    records = [scene.record(0, b"a"), scene.record(1, b"z")]
    outcome = _Home().work(order, 0, Records(records), tick=False)
    assert outcome.migrated == (scene.sink, 1, 1)
    scene.topics.expand(scene.sink, 2)
    grown = attrs.evolve(order, program=order.program.with_counts({scene.sink: 2}), edition=1)
    assert _Home().work(grown, 0, Records(records), tick=False).read == 2
    if order.exactly_once:
        assert [(record[1], record[4]) for record in scene.topics.get(scene.sink)] == [(0, b"a"), (1, b"z")]


def _ranged(program: SubtopologyProgram) -> SubtopologyProgram:
    """Keys from m on belong to partition 1."""
    config = {"static.partitioner.class": "range", "static.partitioner.bounds": "m"}
    sinks = [node for node in program.nodes if isinstance(node, SinkNode)]
    rule = SinkPartitioning(PartitionRule.STATIC, "range")
    return attrs.evolve(
        program,
        application=attrs.evolve(program.application, config={**program.application.config, **config}),
        partitioning={node.name: rule for node in sinks},
    )


def _end(home: _Home) -> None:
    """What the death of its process does."""
    for place in home._places.values():
        home._leave(place)
