"""Batches of random data with record caches of any size: the engine writes what Kafka Streams 4.1.1 writes.

Records that leave a full cache early are among them, in the same order.
"""

import json
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import attrs
import pytest

from headwater.spec import load_text
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.stores.record_cache import StoreEntries
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.runtime.engine.fuzzing.functions import PARTIAL, TOTAL
from tests.runtime.engine.fuzzing.test_data import Outputs, TextProgram, first_difference, shown, theirs
from tests.runtime.partition_columns import by_topic, columns_of
from tests.runtime.replay import runnable_programs
from tests.yaml_text import load_yaml

_SEEDS = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "200"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "3"))
_SIZES = (0, 1, 60, 90, 130, 200, 350, 700, 1_500, 5_000, 1_000_000)
_DELETED_WINDOW = ('"windowBeingProcessed.value" is null', '"next.value" is null')
"""Kafka Streams fails when a sliding window was deleted while its record searches windows."""
_LARGE = (0, 1_000_000)
_KEYS = ("a", "b", "c", "dd", "eee", "ffff", "a", "b", "c", "g is longer", "ä", None)
_HEADERS: tuple[tuple[str, ...], ...] = ((), (), (), ("one",), ("one", "a longer name"))
_JOIN = f'value: "{PARTIAL.join}"'
_ADD = f'add: "{PARTIAL.add}"'
_MERGE = f'merge: "{TOTAL.merge}"'
_INIT = f'init: "{TOTAL.init}"'
_GROUPED = "- stream: {topic: in-a}\n- groupByKey: null\n"
_OUT = "- toStream: null\n- to: {topic: out}\n"
_COUNTED = f"- groupByKey: null\n- count: null\n{_OUT}"
_TABLES = (
    "- table: {topic: in-a, materialized: left, as: l}\n- table: {topic: in-b, materialized: right, as: r}\n"
)
TOPOLOGIES = {
    "count": f"{_GROUPED}- count: null\n{_OUT}",
    "count of two topics": f"- stream: {{topics: [in-a, in-longer]}}\n{_COUNTED}",
    "reduce": f"{_GROUPED}- reduce: {{{_ADD}}}\n{_OUT}",
    "aggregate": f"{_GROUPED}- aggregate: {{{_INIT}, {_ADD}}}\n{_OUT}",
    "aggregate with old values": (
        f'{_GROUPED}- aggregate: {{{_INIT}, {_ADD}, as: t}}\n- filter: {{where: "{TOTAL.where}"}}\n{_OUT}'
    ),
    "two aggregations": (
        "- stream: {topic: in-a, as: s}\n- groupByKey: {from: s}\n- count: {materialized: counts}\n"
        "- toStream: null\n- to: {topic: out-counts}\n"
        f"- groupByKey: {{from: s}}\n- reduce: {{{_ADD}}}\n{_OUT}"
    ),
    "table": f"- table: {{topic: in-a, materialized: rows}}\n{_OUT}",
    "table, then count": (f"- table: {{topic: in-a, materialized: rows}}\n- toStream: null\n{_COUNTED}"),
    "stream to table": f"- stream: {{topic: in-a}}\n- toTable: {{materialized: rows}}\n{_OUT}",
    "tables with stores": (
        f'- table: {{topic: in-a, materialized: rows}}\n- filter: {{where: "{TOTAL.where}", '
        f'materialized: filtered}}\n- mapValues: {{value: "{PARTIAL.value}", materialized: mapped}}\n{_OUT}'
    ),
    "join of tables": (f"{_TABLES}- join: {{from: l, with: r, {_JOIN}}}\n{_OUT}"),
    "join of tables with a store": (
        f"{_TABLES}- outerJoin: {{from: l, with: r, {_JOIN}, materialized: joined}}\n{_OUT}"
    ),
    "join of a stream and a table": (
        "- stream: {topic: in-a, as: s}\n- table: {topic: in-b, materialized: rows, as: t}\n"
        f"- leftJoin: {{from: s, with: t, {_JOIN}}}\n- to: {{topic: out}}\n"
    ),
    "cogroup": (
        "- stream: {topic: in-a}\n- groupByKey: {as: a}\n- stream: {topic: in-b}\n- groupByKey: {as: b}\n"
        f"- cogroup: {{from: a, {_ADD}}}\n- cogroup: {{with: b, {_ADD}}}\n- aggregate: {{{_INIT}}}\n{_OUT}"
    ),
    "tumbling windows": (
        f"{_GROUPED}- windowedBy: {{tumbling: {{size: 10s, grace: 20s}}}}\n- count: null\n{_OUT}"
    ),
    "hopping windows": (
        f"{_GROUPED}- windowedBy: {{hopping: {{size: 9s, advance: 3s, grace: 60s}}}}\n"
        f"- reduce: {{{_ADD}}}\n{_OUT}"
    ),
    "tumbling windows that expire": (
        f"{_GROUPED}- windowedBy: {{tumbling: {{size: 2s, grace: 1s}}}}\n- aggregate: {{{_INIT}, {_ADD}, "
        "as: t}\n"
        f'- filter: {{where: "{TOTAL.where}"}}\n{_OUT}'
    ),
    "hopping windows that expire": (
        f"{_GROUPED}- windowedBy: {{hopping: {{size: 4s, advance: 1s, grace: 0s}}}}\n- count: null\n{_OUT}"
    ),
    "table, then tumbling windows": (
        "- table: {topic: in-a, materialized: rows}\n- toStream: null\n- groupByKey: null\n"
        f"- windowedBy: {{tumbling: {{size: 10s, grace: 20s}}}}\n- count: null\n{_OUT}"
    ),
    "sliding windows": (
        f"{_GROUPED}- windowedBy: {{sliding: {{difference: 5s, grace: 60s}}}}\n"
        f"- aggregate: {{{_INIT}, {_ADD}}}\n{_OUT}"
    ),
    "sliding windows that expire": (
        f"{_GROUPED}- windowedBy: {{sliding: {{difference: 5s, grace: 0s}}}}\n- count: null\n{_OUT}"
    ),
    "session windows that expire": (
        f"{_GROUPED}- windowedBy: {{session: {{gap: 3s, grace: 0s}}}}\n"
        f"- aggregate: {{{_INIT}, {_ADD}, {_MERGE}}}\n{_OUT}"
    ),
    "session windows": (
        f"{_GROUPED}- windowedBy: {{session: {{gap: 3s, grace: 60s}}}}\n"
        f"- aggregate: {{{_INIT}, {_ADD}, {_MERGE}}}\n{_OUT}"
    ),
    "cached store of a processor": (
        "- addStateStore: {name: memory, kind: keyValue, caching: true}\n- stream: {topic: in-a}\n"
        '- process: {class: "tests.runtime.engine.fuzzing.processors:Remember", stores: [memory]}\n'
        "- to: {topic: out}\n"
    ),
}
Batches = list[list[dict[str, Any]]]


def document(topology: str) -> dict[str, Any]:
    return {"application": {"id": "app"}, "topology": load_yaml(topology)}


def batches_of(chance: random.Random, topics: Sequence[str]) -> Batches:
    """Return records with different timestamps: no order is defined for records with the same one."""
    times = iter(chance.sample(range(100_000, 160_000, 500), 120))
    return [
        [
            {
                "topic": chance.choice(topics),
                "key": chance.choice(_KEYS),
                "value": None
                if chance.randrange(8) == 0
                else f"{chance.choice('abcd')}:{'x' * chance.randrange(9)}{n}",
                "timestamp": next(times) + n // 40,
                "headers": list(chance.choice(_HEADERS)),
            }
            for n in range(chance.choice([1, 5, 15, 30]))
        ]
        for _ in range(3)
    ]


def late_batches_of(chance: random.Random, topics: Sequence[str]) -> Batches:
    """Return records of which some are late, and some expire others."""
    batches = batches_of(chance, topics)
    now = 100_000
    for number, record in enumerate(record for batch in batches for record in batch):
        now += chance.choice([0, 250, 500, 1_500, 3_000, 3_000, 70_000 if number % 20 == 0 else 1_000])
        record["timestamp"] = now - chance.choice([0, 0, 0, 500, 1_500, 3_000, 4_500, 6_000]) + number
    return batches


def ours(topology: dict[str, Any], batches: Batches, cache_bytes: int) -> Outputs:
    """Process the batches with one task, record by record; another one gets the same result from columns."""
    (program,) = programs_of(json.dumps(topology), cache_bytes)
    task, of_columns = (Task(program, 0, MemoryState()) for _ in range(2))
    outputs: Outputs = defaultdict(list)
    offsets: defaultdict[str, int] = defaultdict(int)
    for after, batch in enumerate(batches):
        records = []
        for record in batch:
            key, value = (
                None if record[part] is None else record[part].encode() for part in ("key", "value")
            )
            headers = tuple((name, name.encode()) for name in record["headers"])
            topic = record["topic"]
            records.append((topic, 0, offsets[topic], record["timestamp"], key, value, headers))
            offsets[topic] += 1
        written = task.process(records, 0)
        assert by_topic(of_columns.process_partitions(columns_of(records), (), 0)[0]) == by_topic(written)
        for topic, _, key, value, timestamp, headers in written:
            names = tuple(name for name, _ in headers)
            outputs[topic].append((after, shown(key), shown(value), timestamp, names))
        for each in (task, of_columns):
            each.state.commit(each.state.version)
    return dict(outputs)


@cache
def programs_of(text: str, cache_bytes: int) -> list[SubtopologyProgram]:
    loaded = load_text(text, "caches.json")
    assert not loaded.problems, loaded.problems
    settings = EngineSettings(cache_max_bytes=cache_bytes, emit_interval_ms=0, outer_join_interval_ms=0)
    made = runnable_programs(loaded.documents[0], (), settings)
    fields = [field.name for field in attrs.fields(SubtopologyProgram)]
    return [TextProgram(**{name: getattr(each, name) for name in fields}) for each in made]


def topics_of(topology: str) -> list[str]:
    return [topic for topic in ("in-a", "in-b", "in-longer") if topic in topology]


def difference(kafka_streams: KafkaStreams, name: str, seed: int, cache_bytes: int) -> str | None:
    topology = document(TOPOLOGIES[name])
    make = late_batches_of if name.endswith("that expire") else batches_of
    batches = make(random.Random(f"{name} {seed}"), topics_of(TOPOLOGIES[name]))  # noqa: S311 - the same in each run
    answer = kafka_streams.run_batches(topology, batches, cache_bytes)
    if isinstance(answer, Refusal):
        assert any(each in answer.message for each in _DELETED_WINDOW), answer
        return None
    found, wanted = ours(topology, batches, cache_bytes), theirs(list(answer))
    for topic in sorted(found.keys() | wanted.keys()):
        one, other = found.get(topic, []), wanted.get(topic, [])
        if one != other:
            at = first_difference(one, other)
            shown = f"{one[at : at + 3]} instead of {other[at : at + 3]}"
            return f"seed {seed}, {cache_bytes} bytes, {topic} at {at}: {shown}"
    return None


def sizes(name: str) -> Sequence[int]:
    """Return the sizes of the cache. Kafka Streams misses sliding windows that leave a small one."""
    return _LARGE if name.startswith("sliding windows") else _SIZES


def evict_as_kafka_streams(store: StoreEntries) -> None:
    """Evict as `ThreadCache#maybeEvict` and `NamedCache#evict` do while the cache is being flushed.

    A join reads the other table, which may have to flush its cache for this, and the join of that update
    reads this table. Kafka Streams counts twice what is added to the cache meanwhile. And the updates that
    are being flushed may leave the cache before they are written: then the join reads the previous value of
    their key, which stays in the cache. Here a read always returns the latest value.
    """
    before = sum(store.sizes.values())
    key = next(iter(store.sizes))
    del store.sizes[key]
    context = store.updates.pop(key, None)
    if context is not None:
        others = list(store.updates.items())
        store.updates.clear()
        for deleted in store._flush([(key, context), *others]):
            if deleted != key:
                store.sizes.pop(deleted, None)
                store.updates.pop(deleted, None)
    store._cache.size += sum(store.sizes.values()) - before
    if key not in store.sizes:
        overlay = store._flush.__self__.overlay  # type: ignore[attr-defined]  # of the `Cached`
        overlay.written.pop(key, None)
        overlay._read.pop(key, None)


@pytest.fixture
def sizes_of_kafka_streams(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "join of tables" in request.node.name:
        monkeypatch.setattr(StoreEntries, "evict_oldest", evict_as_kafka_streams)


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("sizes_of_kafka_streams")
@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("seeds", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_same_records_for_every_size_of_the_cache(kafka_streams: KafkaStreams, name: str, seeds: int) -> None:
    found = [difference(kafka_streams, name, seed, size) for size in sizes(name) for seed in range(seeds)]
    assert not [each for each in found if each is not None]


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.soak
@pytest.mark.usefixtures("sizes_of_kafka_streams")
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_same_records_for_long(kafka_streams: KafkaStreams, name: str) -> None:
    for seed in range(_FIRST, _FIRST + _SEEDS):
        found = difference(kafka_streams, name, seed, random.Random(seed).choice(sizes(name)))  # noqa: S311 - as above
        assert found is None, found
