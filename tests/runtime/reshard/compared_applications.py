"""Two Kafka Streams applications with the same input: one is resharded, one has the new counts at once."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
from confluent_kafka import Consumer, KafkaException, TopicPartition

from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.start import ReshardOptions, ReshardResult, reshard_application
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.oracle.running_application import running_application
from tests.runtime.engine.fuzzing.functions import PARTIAL
from tests.runtime.spark.kafka_topics import Topics

Json = dict[str, Any]
Records = Mapping[str, list[tuple[bytes, bytes, int]]]
Entries = dict[tuple[str, int], dict[bytes, tuple[bytes, int]]]
"""(Store, partition) → key → (value, timestamp)."""
START_MS = 1_760_000_000_000
_SECONDS = 120.0
_BUFFER, _CALMER = "-Buffer", "calmer"
_BUFFERS = (_BUFFER, f"{_CALMER}-store")
_CONFIG = {
    "statestore.cache.max.bytes": "0",
    "auto.offset.reset": "earliest",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "windowstore.changelog.additional.retention.ms": "3153600000000",  # the timestamps are old
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
}
_VALUE = {"serdes": {"value": "default"}}
_JOINER = {"value": PARTIAL.join, **_VALUE}
_AGGREGATE = {"init": "''", "add": PARTIAL.add}


def all_stores(*, with_suppress: bool = False) -> list[Json]:
    """Return a topology with each kind of store whose entries can move.

    The Java program has no serdes for windowed keys, so it writes the keys of `suppress` as texts.
    """
    return [
        {"stream": {"topic": "orders", "as": "orders"}},
        {"stream": {"topic": "payments", "as": "payments"}},
        {"groupByKey": {"from": "orders", "as": "by-key"}},
        {"aggregate": {"from": "by-key", **_AGGREGATE, "materialized": {"store": "totals", **_VALUE}}},
        {"toStream": {}},
        {"to": {"topic": "out-totals"}},
        {"windowedBy": {"from": "by-key", "tumbling": {"size": "1m", "grace": "1h"}}},
        {"aggregate": {**_AGGREGATE, "materialized": {"store": "minutes", **_VALUE}}},
        *([{"suppress": {"until": "windowCloses", "name": "closed"}}] if with_suppress else []),
        {"windowedBy": {"from": "by-key", "session": {"gap": "5s", "grace": "1h"}}},
        {"aggregate": {**_AGGREGATE, "merge": PARTIAL.merge, "materialized": {"store": "visits", **_VALUE}}},
        {"groupBy": {"from": "orders", "key": PARTIAL.key, "name": "by-value", "as": "by-value"}},
        {"count": {"from": "by-value", "materialized": "regrouped"}},
        {"toStream": {}},
        {"to": {"topic": "out-regrouped"}},
        {
            "outerJoin": {
                "from": "orders",
                "with": "payments",
                "window": {"difference": "10s", "grace": "1h"},
                "name": "paid",
                "storeName": "paid",
                **_JOINER,
            }
        },
        {"to": {"topic": "out-paid"}},
        {"table": {"topic": "customers", "materialized": "customers", "as": "customers"}},
        {"table": {"topic": "contracts", "materialized": "contracts", "as": "contracts"}},
        {
            "leftJoin": {
                "from": "contracts",
                "with": "customers",
                "foreignKey": PARTIAL.foreign_key,
                "name": "owner",
                "materialized": {"store": "owners", **_VALUE},
                **_JOINER,
            }
        },
        {"toStream": {}},
        {"to": {"topic": "out-owners"}},
    ]


def versions_and_buffer() -> list[Json]:
    """Return a topology with a versioned table, and a join that buffers records until their grace is over.

    The retention is longer than the age of the timestamps: otherwise brokers compact old versions.
    """
    return [
        {
            "table": {
                "topic": "prices",
                "as": "prices",
                "materialized": {
                    "supplier": {"name": "history", "kind": "versionedKeyValue", "retention": "36500d"}
                },
            }
        },
        {"stream": {"topic": "orders", "as": "orders"}},
        {"join": {"from": "orders", "with": "prices", "grace": "10s", "name": "late", **_JOINER}},
        {"to": {"topic": "out-late"}},
    ]


def emitted_when_closed() -> list[Json]:
    """Return a topology that emits windows once, when they close."""
    return [
        {"stream": {"topic": "orders", "as": "orders"}},
        {"groupByKey": {"from": "orders"}},
        {"windowedBy": {"tumbling": {"size": "5s", "grace": 0}, "emit": "onWindowClose"}},
        {"aggregate": {**_AGGREGATE, "materialized": {"store": "seconds", **_VALUE}}},
        {"toStream": {}},
        {"selectKey": {"key": PARTIAL.key}},
        {"to": {"topic": "out-closed"}},
    ]


def suppressed(limit: str) -> list[Json]:
    """Return a topology that buffers the updates of a table, and emits the last one of each key later.

    The first record of a task that is later than the limit decides which value is the last one. So the limit
    must not pass while the applications have different tasks.
    """
    return [
        {"stream": {"topic": "orders", "as": "orders"}},
        {"groupByKey": {"from": "orders"}},
        {"aggregate": {**_AGGREGATE, "materialized": {"store": "amounts", **_VALUE}}},
        {"suppress": {"until": "timeLimit", "timeLimit": limit, "name": _CALMER}},
        {"toStream": {}},
        {"to": {"topic": "out-calmer"}},
    ]


def random_steps(seed: int) -> list[Json]:
    """Return some of the parts of all these topologies, in any order; joins of any kind."""
    chance = random.Random(seed)  # noqa: S311 - the same topology in each run
    sources = [
        {"stream": {"topic": "orders", "as": "orders"}},
        {"stream": {"topic": "payments", "as": "payments"}},
        {"table": {"topic": "customers", "materialized": "customers", "as": "customers"}},
        {"table": {"topic": "contracts", "materialized": "contracts", "as": "contracts"}},
        {"groupByKey": {"from": "orders", "as": "by-key"}},
    ]
    steps = all_stores()
    totals, minutes, visits, regrouped, paid, owners = (
        steps[3:6],
        steps[6:8],
        steps[8:10],
        steps[10:14],
        steps[14:16],
        steps[18:],
    )
    (stream_join,), (table_join,) = paid[0].values(), owners[0].values()
    paid[0] = {chance.choice(("join", "leftJoin", "outerJoin")): stream_join}
    owners[0] = {chance.choice(("join", "leftJoin")): table_join}
    late = [{**step} for step in versions_and_buffer() if "stream" not in step]
    late[0]["table"] = {**late[0]["table"], "topic": "payments"}
    buffered = [each for each in suppressed("1h") if "stream" not in each]
    # A topic is the source of a stream or of a table.
    parts = [totals, minutes, visits, regrouped, buffered, owners, chance.choice(([*paid], late))]
    chosen = chance.sample(parts, chance.randint(2, len(parts)))
    if late in chosen:
        sources = [each for each in sources if each.get("stream", {}).get("topic") != "payments"]
    return [*sources, *(step for part in chosen for step in part)]


@attrs.frozen
class Compared:
    """`before` and `after` are source topic → partition count. `steps` name topics without a prefix."""

    servers: str
    topics: Topics
    unique: Callable[[str], str]
    steps: list[Json]
    before: Mapping[str, int]
    after: Mapping[str, int]
    config: Mapping[str, str] = attrs.field(factory=dict)
    names: tuple[str, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "names", (self.unique("moved"), self.unique("fresh")))
        for name, counts in zip(self.names, (self.before, self.after), strict=True):
            outputs = {each["to"]["topic"]: 1 for each in self.steps if "to" in each}
            self.topics.create({f"{name}.{topic}": count for topic, count in {**counts, **outputs}.items()})

    @property
    def moved(self) -> str:
        return self.names[0]

    @property
    def fresh(self) -> str:
        return self.names[1]

    @property
    def connection(self) -> Connection:
        return Connection(bootstrap_servers=(self.servers,))

    def json(self, name: str) -> Json:
        """Return the document of one application, whose topics begin with its name."""
        steps = json.loads(json.dumps(self.steps))
        for step in steps:
            for options in step.values():
                if "topic" in options:
                    options["topic"] = f"{name}.{options['topic']}"
        return {"application": {"id": name, "config": {**_CONFIG, **self.config}}, "topology": steps}

    def document(self, name: str) -> TopologyDocument:
        loaded = load_text(json.dumps(self.json(name)), f"{name}.yaml")
        assert loaded.documents, [problem.summary for problem in loaded.problems]
        return loaded.documents[0]

    def put(self, name: str, records: Records) -> None:
        for topic, found in records.items():
            self.topics.put_by_key(f"{name}.{topic}", found)

    def process(self, records: Records, moved: Json | None = None) -> None:
        """Write records for both applications, and run them; `moved` is another version of that one."""
        for name in self.names:
            self.put(name, records)
        documents = moved or self.json(self.moved), self.json(self.fresh)
        with running_application(self.servers, *documents):
            for name in self.names:
                assert until(partial(self.is_processed, name), _SECONDS)

    def is_processed(self, name: str) -> bool:
        """Return whether the group has committed the ends of all topics that it reads.

        False also while a topic that was just created has no leader.
        """
        with suppress(KafkaException):
            return self._has_committed_ends(name)
        return False

    def _has_committed_ends(self, name: str) -> bool:
        """Read the offsets first: what the application writes later follows from records after them."""
        internal = [topic for topic in self.topics.names() if _is_repartition(name, topic)]
        sources = [f"{name}.{topic}" for topic in self.after]
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": name, "log_level": 0})
        try:
            partitions = [
                TopicPartition(topic, number)
                for topic in (*sources, *internal)
                for number in range(self.topics.partitions(topic))
            ]
            found = consumer.committed(partitions, 90)
            # A record of an open transaction must not be taken for a marker.
            if not all(map(self.topics.is_settled, internal)):
                return False
            ends = [consumer.get_watermark_offsets(each, 30)[1] for each in partitions]
            return all(
                end - max(each.offset, 0) <= (self._markers if each.topic in internal else 0)
                for each, end in zip(found, ends, strict=True)
            )
        finally:
            consumer.close()

    @property
    def _markers(self) -> int:
        """With exactly once, the last offset of an internal topic belongs to a transaction marker."""
        return 1 if self.config.get("processing.guarantee") == "exactly_once_v2" else 0

    def reshard(
        self, options: ReshardOptions | None = None, document: TopologyDocument | None = None
    ) -> ReshardResult:
        counts = {f"{self.moved}.{topic}": count for topic, count in self.after.items()}
        chosen = attrs.evolve(options or ReshardOptions(), partitions=counts)
        moved = document or self.document(self.moved)
        return reshard_application(moved, self.connection, chosen, report_no_progress)

    def entries(self, name: str) -> Entries:
        """Return the entries of all stores, without those that were deleted."""
        found: Entries = defaultdict(dict)
        for topic in sorted(self.topics.names()):
            if not topic.startswith(f"{name}-") or not topic.endswith("-changelog"):
                continue
            store = topic.removeprefix(f"{name}-").removesuffix("-changelog")
            for _, partition, _, timestamp, key, content, _ in self.topics.get(topic):
                assert key is not None
                kept, value = _normalized(store, key, content)
                if value is None:
                    found[store, partition].pop(kept, None)
                else:
                    # Records of buffers have the time when they were written.
                    found[store, partition][kept] = value, 0 if store.endswith(_BUFFERS) else timestamp
        return {place: entries for place, entries in found.items() if entries}

    def histories(self, name: str, store: str) -> Mapping[bytes, list[tuple[bytes | None, int]]]:
        """Return key → all values with their timestamps, in order, in the partition of the key."""
        topic = f"{name}-{store}-changelog"
        count, found = self.topics.partitions(topic), defaultdict(list)
        for _, partition, _, timestamp, key, value, _ in self.topics.get(topic):
            if default_partition(key or b"", count) == partition:
                found[key or b""].append((value, timestamp))
        return found

    def outputs(self, name: str, first: Mapping[str, int]) -> Mapping[str, Mapping[bytes, list[bytes]]]:
        """Return output → key → values in order, from the `first` record of each output on.

        Both sides of a foreign-key join send each other messages, so only its last values are determined.
        """
        found = {}
        for topic in self.output_topics(name):
            values: dict[bytes, list[bytes]] = defaultdict(list)
            for record in self.topics.get(topic)[first.get(topic, 0) :]:
                values[record[4] or b""].append(record[5] or b"")
            only_last = topic.endswith("out-owners")
            found[topic.removeprefix(f"{name}.")] = {
                key: each[-1:] if only_last else each for key, each in values.items()
            }
        return found

    def output_topics(self, name: str) -> list[str]:
        return [f"{name}.{each['to']['topic']}" for each in self.steps if "to" in each]

    def written(self, name: str) -> Mapping[str, int]:
        return {topic: len(self.topics.get(topic)) for topic in self.output_topics(name)}


def batches(topics: Iterable[str], keys: int, size: int, seed: int) -> Iterator[Records]:
    """Yield batches of records without end; each ends with the same time on all partitions of a topic.

    Records of different topics have different times: which of two with one time is processed first is not
    determined in Kafka Streams, not even if nothing is resharded.

    All keys have three bytes. With other lengths, Kafka Streams takes bytes of restored keys for the stream
    time of the buffer of a join (`test_restored_buffers`), and the old partition of a changelog topic has
    other keys than if it had the new count from the start.
    """
    chance = random.Random(seed)  # noqa: S311 - the same records in each run
    names, now = sorted(topics), START_MS
    while True:
        batch: dict[str, list[tuple[bytes, bytes, int]]] = {topic: [] for topic in names}
        for number in range(size):
            now += len(names) + chance.randrange(400)
            for index, topic in enumerate(names):
                key, other = (b"k%02d" % chance.randrange(keys) for _ in range(2))
                value = (
                    b""
                    if topic in ("customers", "contracts") and number % 17 == 0
                    else other + b":%d" % number
                )
                batch[topic].append((key, value, now + index))
        # The newest record of a partition decides the stream time: let it be equal at both counts.
        now += 1000
        for index, topic in enumerate(names):
            batch[topic] += [(b"k%02d" % each, b"k%02d:t" % each, now + index) for each in range(keys)]
        yield batch


def _is_repartition(name: str, topic: str) -> bool:
    internal = ("-repartition", "-registration-topic", "-response-topic")
    return topic.startswith(f"{name}-") and topic.endswith(internal)


def _normalized(store: str, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    """Return an entry without what depends on the order of other keys."""
    if store.endswith(_BUFFERS):
        # `BufferValue`: timestamp, offset, length of the topic, topic, partition, headers, values
        after_partition = 24 + int.from_bytes(value[16:20], "big") if value is not None else 0
        kept = key[:-4] if store.endswith(_BUFFER) else key
        return kept, None if value is None else value[:8] + value[after_partition:]
    if store.startswith("paid-") and store.endswith(("this-join-store", "other-join-store")):
        return key[:-4], value  # the sequence number of the task
    return key, value
