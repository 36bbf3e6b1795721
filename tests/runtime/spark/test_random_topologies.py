"""Random data through random topologies, Spark's queries and a real broker, beside what Kafka Streams says.

Without a cache, and fed so that no order is left to chance, sinks get what Kafka Streams writes, record by
record. With the cache, all at once and on several partitions, the rows that are left are those of one by one.
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

from infra.model.topology import TopologyDocument
from infra.spec import load_text
from spark_jobs.runtime.driver.application import StreamsApplication
from spark_jobs.runtime.driver.states import ClientState
from spark_jobs.runtime.engine.records import InputRecord
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.runtime.engine.fuzzing.data import records
from tests.runtime.engine.fuzzing.generation import TableGenerator
from tests.runtime.engine.fuzzing.test_data import Outputs, situation, theirs
from tests.runtime.replay import UNCACHED, Replay, runnable_programs
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.random_runs import (
    Circumstances,
    Json,
    Rig,
    Ways,
    at_possible_times,
    in_stretches,
    is_timeless,
    piped,
    runs,
    texts,
)
from toolchain.broker import Broker
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.oracle, pytest.mark.timeout(900)]

_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "100"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_UNCACHED = {
    "statestore.cache.max.bytes": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
}
_CHEAP, _FEW_QUERIES = 3, 4
_MOST_SINGLY, _STRETCH = 16, 10
_MOST_SINGLY_TICKING, _STRETCH_TICKING = 6, 20
_PATIENCE_SECONDS = 120.0
_ON_THE_WAY = (ClientState.CREATED, ClientState.REBALANCING, ClientState.PENDING_ERROR)
Shown = tuple[str | None, str | None, int | None, tuple[str, ...]]
"""Key, value, timestamp, names of headers."""


@pytest.fixture(scope="module")
def rig(
    spark: SparkSession,
    keeping_broker: Broker,
    unique: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Rig:
    topics = Topics(keeping_broker.bootstrap_servers)
    return Rig(spark, topics, keeping_broker.bootstrap_servers, tmp_path_factory.mktemp("runs"), unique)


@attrs.frozen
class Question:
    """What can be asked of Kafka Streams, too: no clock and no chance have a say in it."""

    document: Json
    data: tuple[Json, ...]
    ways: Ways

    @property
    def is_cheap(self) -> bool:
        """Few queries, and none that ticks: whether one of those is idle takes seconds to find out."""
        return not _ticks(self.document) and len(self.ways.written) <= _FEW_QUERIES


def question(kafka_streams: KafkaStreams, seed: int) -> Question | None:
    document, data = situation(seed)
    if "processors:Tick" in str(document) or isinstance(kafka_streams.run(document, []), Refusal):
        return None
    ways = Ways.of(runnable_programs(_loaded(document), ()))
    fed = at_possible_times([record for record in data if "topic" in record])
    if any(ways.meets_itself(topic) for topic in {record["topic"] for record in fed}):
        return None
    return Question(document, tuple(fed), ways)


def record_by_record(rig: Rig, kafka_streams: KafkaStreams, seed: int, asked: Question) -> str | None:
    """Return the first difference."""
    document, ways = asked.document, asked.ways
    chance = random.Random(f"{seed} record by record")  # noqa: S311 - the same circumstances in each run
    circumstances = Circumstances.drawn(chance, document, 3 if is_timeless(document) else 1)
    singly = circumstances.partitions > 1 or not all(ways.is_tree(record["topic"]) for record in asked.data)
    most, stretch = (_MOST_SINGLY_TICKING, _STRETCH_TICKING) if _ticks(document) else (_MOST_SINGLY, _STRETCH)
    data = list(asked.data[:most]) if singly else in_stretches(asked.data, stretch)
    parts = runs(data, ways, singly=circumstances.partitions > 1)
    answer = kafka_streams.run(document, data)
    wanted = {} if isinstance(answer, Refusal) else _sinks(theirs(answer))
    stop_after = chance.randrange(len(parts)) if circumstances.stops else None
    with rig.scene(document, _UNCACHED, wanted.keys() | _named_sinks(document), circumstances) as scene:
        application = scene.start()
        for number, part in enumerate(parts):
            scene.feed(part)
            application.wait_until_idle()
            if number == stop_after and not application.state.is_final:
                application = scene.start_again()
        application.wait_until_idle()
        state, problems = _settled(application), application.problems
        outputs = scene.outputs()
    if isinstance(answer, Refusal):
        return None if state is ClientState.ERROR else f"goes on where Kafka Streams dies: {answer.message}"
    if state is not ClientState.RUNNING:
        return f"{state.value}: {problems}"
    found = _first_difference({topic: list(map(_shown, rows)) for topic, rows in outputs.items()}, wanted)
    return None if found is None else f"{found}\n{circumstances}, {stop_after=}\n{_steps(document)}"


def tables(seed: int) -> tuple[Json, list[Json]]:
    """Draw tables, and records that delete nothing."""
    chance = random.Random(f"{seed} tables")  # noqa: S311 - the same topologies in each run
    generator = TableGenerator(chance)
    document = generator.document(chance.randint(1, 6))
    made = [each for each in records(chance, generator.topics, 60) if "topic" in each]
    return document, at_possible_times([e for e in made if e["key"] is not None and e["value"] is not None])


def all_at_once(rig: Rig, seed: int) -> str | None:
    """Return how the rows differ that are left at the end."""
    document, data = tables(seed)
    chance = random.Random(f"{seed} all at once")  # noqa: S311 - the same circumstances in each run
    circumstances = Circumstances.drawn(chance, document, 1 if _folds_in_order(document) else 3)
    if circumstances.stops:  # maybe in the middle of a batch, which at least once may repeat
        circumstances = attrs.evolve(circumstances, guarantee="exactly_once_v2")
    one_by_one = Replay(texts(runnable_programs(_loaded(document), (), UNCACHED)))
    for record in data:
        topic, _, key, value, timestamp, _ = piped(record, 1)
        one_by_one.pipe(topic, key, value, timestamp)
    with rig.scene(document, {}, _named_sinks(document), circumstances) as scene:
        scene.feed(data)
        application = scene.start()
        if circumstances.stops:
            some = chance.randrange(len(data))
            assert until(lambda: scene.read() > some, _PATIENCE_SECONDS)
            application = scene.start_again()
        application.wait_until_idle()
        state, problems = _settled(application), application.problems
        outputs = scene.outputs()
    if state is not ClientState.RUNNING:
        return f"{state.value}: {problems}"
    wanted = _tables((topic, key, value) for topic, _, key, value, _, _ in one_by_one.written)
    found = _tables(
        (topic, key, value) for rows in outputs.values() for topic, _, _, _, key, value, _ in rows
    )
    if found == wanted:
        return None
    return f"{found}\ninstead of\n{wanted}\n{circumstances}\n{_steps(document)}"


def _settled(application: StreamsApplication) -> ClientState:
    """The client sees a moment later than others that its queries run."""
    assert until(lambda: application.state not in _ON_THE_WAY, _PATIENCE_SECONDS), application.state
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


def _folds_in_order(document: Json) -> bool:
    """Records of several partitions are folded in an order that is left to chance."""
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


def _first_difference(found: Mapping[str, list[Shown]], wanted: Mapping[str, list[Shown]]) -> str | None:
    """Streams are equal as multisets, and in order where they have a key."""
    for topic in sorted(found.keys() | wanted.keys()):
        one, other = _by_key(found.get(topic, [])), _by_key(wanted.get(topic, []))
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
    """The last row of each key in each sink, but for groups without members."""
    tables: dict[str, dict[bytes | None, bytes]] = defaultdict(dict)
    for topic, key, value in written:
        if topic.startswith("out-"):
            tables[topic].pop(key, None)
            if value is not None and value != bytes(8):
                tables[topic][key] = value
    return {topic: rows for topic, rows in tables.items() if rows}


def _steps(document: Json) -> str:
    return "\n".join(json.dumps(step) for step in (document["application"], *document["topology"]))


@pytest.mark.parametrize("number", range(_CHEAP))
def test_the_same_record_by_record(rig: Rig, kafka_streams: KafkaStreams, number: int) -> None:
    """Seeds that are cheap, for `make test`."""
    cheap = (
        (seed, asked)
        for seed in count()
        if (asked := question(kafka_streams, seed)) is not None and asked.is_cheap
    )
    seed, asked = next(islice(cheap, number, None))
    found = record_by_record(rig, kafka_streams, seed, asked)
    assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("number", range(_CHEAP))
def test_the_same_tables_all_at_once(rig: Rig, number: int) -> None:
    seed = next(islice((seed for seed in count() if not _ticks(tables(seed)[0])), number, None))
    found = all_at_once(rig, seed)
    assert found is None, f"seed {seed}: {found}"


@pytest.mark.timeout(0)
@pytest.mark.soak
def test_the_same_for_long(rig: Rig, kafka_streams: KafkaStreams) -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        asked = question(kafka_streams, seed)
        found = None if asked is None else record_by_record(rig, kafka_streams, seed, asked)
        found = found or all_at_once(rig, seed)
        assert found is None, f"seed {seed}: {found}"
