"""Random data through random topologies on Spark and a real broker, compared with Kafka Streams.

Without a cache, and with input in a defined order, sinks get the records of Kafka Streams, record by record.
With the cache, all records at once and several partitions, the final rows are the same as one record after
the other.
"""

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count, islice, pairwise
from typing import Any

import attrs
import pytest
from pyspark.sql import SparkSession

from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.states import ClientState
from headwater_spark.engine.records import InputRecord
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.runtime.engine.fuzzing.data import records
from tests.runtime.engine.fuzzing.generation import TableGenerator
from tests.runtime.engine.fuzzing.test_data import Outputs, situation, theirs
from tests.runtime.replay import UNCACHED, BatchReplay, runnable_programs
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.random_runs import (
    Conditions,
    Json,
    Routes,
    Runner,
    groups,
    is_time_independent,
    output_record,
    sorted_in_chunks,
    texts,
    with_valid_times,
)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.oracle,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("packed_batches"),
]

_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "100"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_UNCACHED = {
    "statestore.cache.max.bytes": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
}
_FEW_QUERIES = 4
_CHEAP = [0, *(pytest.param(number, marks=pytest.mark.soak) for number in (1, 2))]
"""Numbers of seeds with small topologies."""
_MOST_SINGLY, _CHUNK = 16, 10
_MOST_SINGLY_TICKING, _CHUNK_TICKING = 6, 20
_TIMEOUT_SECONDS = 120.0
_INTERMEDIATE = (ClientState.CREATED, ClientState.REBALANCING, ClientState.PENDING_ERROR)
Shown = tuple[str | None, str | None, int | None, tuple[str, ...]]
"""(key, value, timestamp, names of headers)"""


@pytest.fixture(scope="module")
def runner(
    spark: SparkSession,
    keeping_broker: Broker,
    unique: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Runner:
    topics = Topics(keeping_broker.bootstrap_servers, keeps_producer=True)
    return Runner(spark, topics, keeping_broker.bootstrap_servers, tmp_path_factory.mktemp("runs"), unique)


@attrs.frozen
class Scenario:
    """A topology and its input, with results that depend neither on the clock nor on a race."""

    document: Json
    data: tuple[Json, ...]
    routes: Routes

    @property
    def is_cheap(self) -> bool:
        """Return whether there are few queries, none with ticks: such a query is idle only after seconds."""
        return not _ticks(self.document) and len(self.routes.written) <= _FEW_QUERIES


def scenario(kafka_streams: KafkaStreams, seed: int) -> Scenario | None:
    document, data = situation(seed)
    if "processors:Tick" in str(document) or isinstance(kafka_streams.run(document, []), Refusal):
        return None
    routes = Routes.of(runnable_programs(_loaded(document), ()))
    fed = with_valid_times([record for record in data if "topic" in record])
    if any(routes.has_race(topic) for topic in {record["topic"] for record in fed}):
        return None
    return Scenario(document, tuple(fed), routes)


def record_by_record(runner: Runner, kafka_streams: KafkaStreams, seed: int, case: Scenario) -> str | None:
    """Return the first difference to Kafka Streams."""
    document, routes = case.document, case.routes
    chance = random.Random(f"{seed} record by record")  # noqa: S311 - the same conditions in each run
    conditions = Conditions.drawn(chance, document, 3 if is_time_independent(document) else 1)
    singly = conditions.partitions > 1 or not all(routes.is_tree(record["topic"]) for record in case.data)
    most, chunk = (_MOST_SINGLY_TICKING, _CHUNK_TICKING) if _ticks(document) else (_MOST_SINGLY, _CHUNK)
    data = list(case.data[:most]) if singly else sorted_in_chunks(case.data, chunk)
    parts = groups(data, routes, singly=conditions.partitions > 1)
    answer = kafka_streams.run(document, data)
    expected = {} if isinstance(answer, Refusal) else _sinks(theirs(answer))
    stop_after = chance.randrange(len(parts)) if conditions.stops else None
    with runner.application(document, _UNCACHED, expected.keys() | _named_sinks(document), conditions) as run:
        application = run.start()
        for number, part in enumerate(parts):
            run.feed(part)
            application.wait_until_idle()
            if number == stop_after and not application.state.is_final:
                application = run.restart()
        application.wait_until_idle()
        state, problems = _settled(application), application.problems
        outputs = run.outputs()
    if isinstance(answer, Refusal):
        return (
            None if state is ClientState.ERROR else f"continues where Kafka Streams fails: {answer.message}"
        )
    if state is not ClientState.RUNNING:
        return f"{state.value}: {problems}"
    found = _first_difference({topic: list(map(_shown, rows)) for topic, rows in outputs.items()}, expected)
    return None if found is None else f"{found}\n{conditions}, {stop_after=}\n{_steps(document)}"


def tables(seed: int) -> tuple[Json, list[Json]]:
    """Draw tables, and records without deletions."""
    chance = random.Random(f"{seed} tables")  # noqa: S311 - the same topologies in each run
    generator = TableGenerator(chance)
    document = generator.document(chance.randint(1, 6))
    made = [each for each in records(chance, generator.topics, 60) if "topic" in each]
    return document, with_valid_times([e for e in made if e["key"] is not None and e["value"] is not None])


def all_at_once(runner: Runner, seed: int) -> str | None:
    """Return how the final rows differ."""
    document, data = tables(seed)
    chance = random.Random(f"{seed} all at once")  # noqa: S311 - the same conditions in each run
    conditions = Conditions.drawn(chance, document, 1 if _depends_on_order(document) else 3)
    if conditions.stops:  # a stop inside a batch may repeat records with at least once
        conditions = attrs.evolve(conditions, guarantee="exactly_once_v2")
    one_by_one = BatchReplay(texts(runnable_programs(_loaded(document), (), UNCACHED)))
    for record in data:
        topic, _, key, value, timestamp, _ = output_record(record, 1)
        one_by_one.pipe(topic, key, value, timestamp)
    with runner.application(document, {}, _named_sinks(document), conditions) as run:
        run.feed(data)
        application = run.start()
        if conditions.stops:
            some = chance.randrange(len(data))
            assert until(lambda: run.read() > some, _TIMEOUT_SECONDS)
            application = run.restart()
        application.wait_until_idle()
        state, problems = _settled(application), application.problems
        outputs = run.outputs()
    if state is not ClientState.RUNNING:
        return f"{state.value}: {problems}"
    expected = _tables((topic, key, value) for topic, _, key, value, _, _ in one_by_one.written)
    found = _tables(
        (topic, key, value) for rows in outputs.values() for topic, _, _, _, key, value, _ in rows
    )
    if found == expected:
        return None
    return f"{found}\ninstead of\n{expected}\n{conditions}\n{_steps(document)}"


def _settled(application: StreamsApplication) -> ClientState:
    """Wait for the client's state: it changes a moment after the queries' states."""
    assert until(lambda: application.state not in _INTERMEDIATE, _TIMEOUT_SECONDS), application.state
    return application.state


def _ticks(document: Json) -> bool:
    return "processors:" in str(document)


def _named_sinks(document: Json) -> set[str]:
    return {step["to"]["topic"] for step in document["topology"] if "topic" in step.get("to", {})}


def _sinks(written: Outputs) -> Mapping[str, list[Shown]]:
    return {
        topic: [(key, value, timestamp, names) for _, key, value, timestamp, names in rows]
        for topic, rows in written.items()
        if topic.startswith("out-")
    }


def _loaded(document: Json) -> TopologyDocument:
    loaded = load_text(json.dumps(document), "fuzz.json")
    assert not loaded.problems, loaded.problems
    return loaded.documents[0]


def _depends_on_order(document: Json) -> bool:
    """Return whether the result depends on the order of records from several partitions."""
    steps = [next(iter(step.items())) for step in document["topology"]]
    return any(
        grouped == "groupBy" and "value" not in options and folded != "count"
        for (grouped, options), (folded, _) in pairwise(steps)
    )


def _shown(record: InputRecord) -> Shown:
    _, _, _, timestamp, key, value, headers = record
    return _text(key), _text(value), timestamp, tuple(name for name, _ in headers)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


def _first_difference(found: Mapping[str, list[Shown]], expected: Mapping[str, list[Shown]]) -> str | None:
    """Compare streams as multisets, and in order for each key."""
    for topic in sorted(found.keys() | expected.keys()):
        one, other = _by_key(found.get(topic, [])), _by_key(expected.get(topic, []))
        for key in one.keys() | other.keys():
            left, right = one.get(key, []), other.get(key, [])
            if left != right and (key is not None or Counter(left) != Counter(right)):
                return f"{topic}, key {key!r}: {left} instead of {right}"
    return None


def _by_key(shown: Iterable[Shown]) -> Mapping[str | None, list[Shown]]:
    rows: dict[str | None, list[Shown]] = defaultdict(list)
    for each in shown:
        rows[each[0]].append(each)
    return rows


def _tables(written: Iterable[tuple[str, bytes | None, bytes | None]]) -> Mapping[str, Mapping[Any, bytes]]:
    """Return the last row of each key in each sink, without empty groups."""
    tables: dict[str, dict[bytes | None, bytes]] = defaultdict(dict)
    for topic, key, value in written:
        if topic.startswith("out-"):
            tables[topic].pop(key, None)
            if value is not None and value != bytes(8):
                tables[topic][key] = value
    return {topic: rows for topic, rows in tables.items() if rows}


def _steps(document: Json) -> str:
    return "\n".join(json.dumps(step) for step in (document["application"], *document["topology"]))


@pytest.mark.parametrize("number", _CHEAP)
def test_records_are_the_same_as_in_kafka_streams(
    runner: Runner, kafka_streams: KafkaStreams, number: int
) -> None:
    """Use seeds with small topologies, for `make test`."""
    cheap = (
        (seed, case)
        for seed in count()
        if (case := scenario(kafka_streams, seed)) is not None and case.is_cheap
    )
    seed, case = next(islice(cheap, number, None))
    found = record_by_record(runner, kafka_streams, seed, case)
    assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("number", _CHEAP)
def test_final_rows_are_the_same_all_at_once(runner: Runner, number: int) -> None:
    seed = next(islice((seed for seed in count() if not _ticks(tables(seed)[0])), number, None))
    found = all_at_once(runner, seed)
    assert found is None, f"seed {seed}: {found}"


@pytest.mark.timeout(0)
@pytest.mark.soak
def test_many_seeds(runner: Runner, kafka_streams: KafkaStreams) -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        case = scenario(kafka_streams, seed)
        found = None if case is None else record_by_record(runner, kafka_streams, seed, case)
        found = found or all_at_once(runner, seed)
        assert found is None, f"seed {seed}: {found}"
