"""An application with state that was stopped, as it is on a broker. No JVM has to run for it."""

import json
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing import get_context

import attrs
from confluent_kafka import Consumer, TopicPartition

from headwater.kafka import Connection
from headwater.model.offset_metadata import encode_processor_metadata
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard import start
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.groups import commit_as_kafka_streams, committed_texts
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.spark.kafka_topics import Topics

_TIME = 1_760_000_000_000
KEYS = [b"key %d" % each for each in range(40)]


@attrs.frozen
class StoppedApplication:
    """An application that was stopped: entries of its keys, unprocessed records, and offsets.

    `place` returns the partition of a key, from the number of partitions. `partitions` is the present one.
    """

    servers: str
    topics: Topics
    id: str
    place: Callable[[bytes, int], int] = default_partition
    partitions: int = 2
    keys: Sequence[bytes] = tuple(KEYS)

    @property
    def source(self) -> str:
        return f"{self.id}-orders"

    @property
    def internal(self) -> Mapping[str, str]:
        return {
            name: f"{self.id}-{name}"
            for name in ("kept-changelog", "totals-changelog", "by-value-repartition")
        }

    def text(self, totals: str = "totals") -> str:
        steps = [
            {"stream": {"topic": self.source, "as": "orders"}},
            {"groupByKey": {"from": "orders"}},
            {"count": {"materialized": "kept"}},
            {"groupBy": {"from": "orders", "key": "value", "name": "by-value"}},
            {"count": {"materialized": totals}},
        ]
        return json.dumps({"application": {"id": self.id}, "topology": steps})

    def create(self) -> None:
        """Create the topics, write entries of all keys, and records of which half are processed."""
        self.topics.create({self.source: self.partitions})
        self.topics.create(
            dict.fromkeys(self.internal.values(), self.partitions), {"cleanup.policy": "compact"}
        )
        self.topics.configure(self.internal["by-value-repartition"], {"cleanup.policy": "delete"})
        for store in ("kept", "totals"):
            topic = self.internal[f"{store}-changelog"]
            self._put(topic, [(key, b"old", _TIME) for key in self.keys])
            self._put(topic, [(key, key + b" of " + store.encode(), _TIME + 1) for key in self.keys])
            self.topics.send(
                (topic, self.place(key, self.partitions), key, None, _TIME, ()) for key in self.keys[::7]
            )
        records = [(key, b"%d" % number, _TIME + number) for number in range(3) for key in self.keys]
        self._put(self.internal["by-value-repartition"], records)
        self._put(self.source, records)
        commits = {}
        for topic, is_processed in ((self.source, True), (self.internal["by-value-repartition"], False)):
            for partition in range(self.partitions):
                end = len([each for each in self.topics.get(topic) if each[1] == partition])
                text = encode_processor_metadata(_TIME + partition, {})
                offset = end if is_processed else end // 2
                commits[topic, partition] = (offset, text)
        commit_as_kafka_streams(self.servers, self.id, commits)

    def _put(self, topic: str, records: Iterable[tuple[bytes, bytes, int]]) -> None:
        self.topics.send(
            (topic, self.place(key, self.partitions), key, value, time, ()) for key, value, time in records
        )

    def entries(self, store: str) -> Mapping[bytes, bytes]:
        """Return the entries of a store; fail if a key is in two partitions, or in a wrong partition."""
        topic = f"{self.id}-{store}-changelog"
        found: dict[tuple[int, bytes], bytes | None] = {}
        for _, partition, _, _, key, value, _ in self.topics.get(topic):
            found[partition, key or b""] = value
        live = {place: value for place, value in found.items() if value is not None}
        count = self.topics.partitions(topic)
        assert all(self.place(key, count) == partition for partition, key in live)
        return {key: value for (_, key), value in live.items()}

    def unprocessed(self) -> Mapping[bytes, list[bytes]]:
        """Return key → values of the records that the application has not processed, in order."""
        topic = self.internal["by-value-repartition"]
        found: dict[bytes, list[bytes]] = defaultdict(list)
        committed = self.committed(topic)
        for _, partition, offset, _, key, value, _ in self.topics.get(topic):
            if offset >= committed[partition].offset:
                assert self.place(key or b"", len(committed)) == partition
                found[key or b""].append(value or b"")
        return found

    def committed(self, topic: str) -> list[TopicPartition]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": self.id})
        try:
            partitions = range(self.topics.partitions(topic))
            return consumer.committed([TopicPartition(topic, each) for each in partitions], 90)
        finally:
            consumer.close()

    def check(
        self, before: Mapping[str, Mapping[bytes, bytes]], waiting: Mapping[bytes, list[bytes]]
    ) -> None:
        """Check that the application has 5 partitions, the same entries and the same unprocessed records."""
        assert {self.topics.partitions(topic) for topic in (self.source, *self.internal.values())} == {5}
        assert {store: self.entries(store) for store in before} == before
        assert self.unprocessed() == waiting
        assert [each.offset for each in self.committed(self.source)[2:]] == [0, 0, 0]
        texts = committed_texts(self.servers, self.id)
        # The latest time of both tasks: a key of any may be in each.
        text = encode_processor_metadata(_TIME + 1, {})
        read = (self.source, self.internal["by-value-repartition"])
        assert {texts[topic, each] for topic in read for each in range(5)} == {text}

    def reshard_killed_after(self, operations: int) -> bool:
        """Reshard to 5 partitions in a process that dies after some operations; return whether it did."""
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        process = context.Process(
            target=_reshard_and_die, args=(self.text(), self.servers, self.source, operations)
        )
        process.start()
        process.join(120)
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode != 0


def _reshard_and_die(text: str, servers: str, source: str, operations: int) -> None:
    die_after(operations, start)
    (document,) = load_text(text, "app.yaml").documents
    options = ReshardOptions(partitions={source: 5})
    reshard_application(document, Connection(bootstrap_servers=(servers,)), options, report_no_progress)
