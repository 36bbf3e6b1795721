"""Records that a real broker refuses: the production exception handler applies, on every kind of topic."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.model.problems import errors
from headwater.spec import load_text
from headwater.toolchain.broker import local
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.records import InputRecord
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_owner import TaskOwner
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_NOW = 1_700_000_000_000
_YEAR_2200 = 7_258_118_400_000
_MANY = 10_000
"""Records whose sending takes longer than the answer to the first request."""
_CONTINUE = "AlwaysContinueProductionExceptionHandler"
_SOURCE = """
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}"""
_FORWARD = f"""{_SOURCE}
  - to: {{topic: SINK}}
"""
_REPARTITION = f"""{_SOURCE}
  - selectKey: {{key: value}}
  - repartition: {{as: again, partitions: 1}}
  - to: {{topic: SINK}}
"""
_COUNT = f"""{_SOURCE}
  - groupByKey:
  - count: {{materialized: counts}}
  - toStream:
  - to: {{topic: SINK, serdes: {{key: string, value: long}}}}
"""


@attrs.frozen
class Application:
    """The first sub-topology of an application, and the topic that its task writes first."""

    topics: Topics
    request: BatchRequest
    source: str
    topic: str

    def record(self, offset: int, value: bytes = b"v", time: int = _NOW) -> InputRecord:
        return (self.source, 0, offset, time, b"k%d" % offset, value, ())

    def process(self, records: Sequence[InputRecord]) -> BatchResult:
        owner = TaskOwner()
        try:
            return owner.process_or_forward(self.request, 0, RecordInput(records), tick=False)
        finally:
            owner.close()

    def written(self) -> list[bytes]:
        """Return the keys, sorted; with at least once a batch that was attempted twice is written twice."""
        keys = [record[4] or b"" for record in self.topics.get(self.topic)]
        return sorted(keys if self.request.exactly_once else set(keys))

    def dead_letters(self) -> list[tuple[bytes | None, bytes | None]]:
        return [
            (record[4], dict(record[6])["__streams.errors.offset"]) for record in self.topics.get(self.dead)
        ]

    @property
    def sink(self) -> str:
        return f"out-{self.request.application}"

    @property
    def dead(self) -> str:
        return f"dead-{self.request.application}"


Create = Callable[..., Application]


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def create(
    request: pytest.FixtureRequest, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Create:
    def application(
        topology: str, handler: str | None, cache: int = 0, *, largest: int | None = None
    ) -> Application:
        id_ = unique("refused")
        source, sink, dead = f"in-{id_}", f"out-{id_}", f"dead-{id_}"
        config = {"statestore.cache.max.bytes": str(cache), "errors.dead.letter.queue.topic.name": dead}
        if handler is not None:
            config["production.exception.handler"] = handler
        if largest is not None:
            config["producer.max.request.size"] = str(largest)
        text = topology.replace("SOURCE", source).replace("SINK", sink)
        loaded = load_text(f"application: {{id: {id_}, config: {config}}}\ntopology:{text}", "test.yaml")
        assert not errors(loaded.problems), loaded.problems
        document = loaded.documents[0]
        compiled = compile_document(document, {source: 1, sink: 1})
        program: SubtopologyProgram = build_programs(document, build_nodes(document), compiled)[0]
        topics = Topics(kafka.bootstrap_servers)
        names = [source, sink, dead, *(topic.name for topic in compiled.internal_topics)]
        topics.create(dict.fromkeys(names, 1), {"max.message.bytes": str(largest or 20_000)})
        batch_request = BatchRequest(
            application=id_,
            group=id_,
            connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
            program=program,
            state_folder=tmp_path,
            partition_counts={source: 1},
            exactly_once=request.param,
        )
        written = next((topic.name for topic in compiled.internal_topics), sink)
        return Application(topics, batch_request, source, written)

    return application


_TOPOLOGIES = pytest.mark.parametrize(
    ("topology", "cache"),
    [
        pytest.param(_FORWARD, 0, id="sink"),
        pytest.param(_REPARTITION, 0, id="repartition topic"),
        pytest.param(_COUNT, 0, id="changelog"),
        pytest.param(_COUNT, 1_000_000, id="changelog, cache"),
    ],
)
"""Topologies with the size of the record cache; only stores have one."""


@_TOPOLOGIES
def test_a_timestamp_that_the_broker_refuses_is_reported_with_its_input_record(
    create: Create, topology: str, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "REQUEST_SECONDS", 120.0)  # more than all attempts take on a busy machine
    application = create(topology, None, cache)
    started = time.monotonic()
    result = application.process(
        [application.record(0), application.record(1, time=_YEAR_2200), application.record(2)]
    )
    assert time.monotonic() - started < clients.REQUEST_SECONDS  # no commit has timed out
    # A count writes to two topics, and either may refuse its record first.
    topics = [application.topic, application.sink] if topology == _COUNT else [application.topic]
    text = f"record of {application.source}, partition 0, offset 1: cannot be written to"
    assert result.poison_record is not None
    assert result.poison_record.startswith(tuple(f"{text} {topic}: " for topic in topics))
    assert "(timestamp 2200-01-01T00:00:00Z)" in result.poison_record
    assert result.poison_handler == "production.exception.handler"
    if application.request.exactly_once:
        assert application.written() == []


def test_a_record_may_be_refused_while_others_are_sent(create: Create) -> None:
    application = create(_FORWARD, None)
    result = application.process(
        [application.record(0, time=_YEAR_2200), *map(application.record, range(1, _MANY))]
    )
    assert result.poison_record is not None
    assert "partition 0, offset 0: cannot be written" in result.poison_record


@_TOPOLOGIES
def test_a_refused_timestamp_is_skipped_if_the_handler_continues(
    create: Create, topology: str, cache: int
) -> None:
    application = create(topology, _CONTINUE, cache)
    times = {1: _YEAR_2200, 3: _YEAR_2200 - 86_400_000, 4: _YEAR_2200 + 86_400_000}
    result = application.process(
        [application.record(offset, b"v%d" % offset, times.get(offset, _NOW)) for offset in range(6)]
    )
    assert result.poison_record is None
    expected = [b"k0", b"k2", b"k5"] if topology != _REPARTITION else [b"v0", b"v2", b"v5"]
    assert application.written() == expected
    skipped = 2 if topology == _COUNT else 1  # the changelog record, and the one of the sink
    assert result.dropped == 3 * skipped
    assert result.handler_message is not None
    assert "offset 4: cannot be written to" in result.handler_message
    assert set(application.dead_letters()) == {(b"k1", b"1"), (b"k3", b"3"), (b"k4", b"4")}
    assert application.process([application.record(6)]).dropped == 0


def test_a_record_that_is_too_large_is_skipped_and_small_ones_are_not(create: Create) -> None:
    """All records together exceed the limit of a request, and two of them the limits of topic and client."""
    application = create(_FORWARD, _CONTINUE)
    values = {3: b"x" * 50_000, 7: b"x" * 2_000_000}
    result = application.process(
        [application.record(offset, values.get(offset, b"x" * 500)) for offset in range(100)]
    )
    assert result.poison_record is None
    assert application.written() == sorted(b"k%d" % offset for offset in range(100) if offset not in values)
    assert result.dropped == 2


def test_many_small_records_fit_a_topic_with_a_low_limit(create: Create) -> None:
    application = create(_FORWARD, None)
    result = application.process([application.record(offset, b"x" * 500) for offset in range(100)])
    assert result.poison_record is None
    assert len(application.written()) == 100


def test_a_record_as_large_as_the_application_allows_is_written(create: Create) -> None:
    """Kafka Streams' producer has the same limit; the topic allows such records, too."""
    application = create(_FORWARD, _CONTINUE, largest=3_000_000)
    values = {1: b"x" * 2_900_000, 2: b"x" * 3_100_000}
    result = application.process([application.record(each, values.get(each, b"v")) for each in range(4)])
    assert application.written() == [b"k0", b"k1", b"k3"]
    assert result.dropped == 1
