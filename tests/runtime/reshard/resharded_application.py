"""An application with all kinds of stores, in a cluster in memory, and what a reshard must keep of it."""

import json
import random
import struct
from collections import defaultdict
from collections.abc import Mapping

import attrs

from headwater.compiler import compile_document
from headwater.model.compiled import TopicKind
from headwater.model.offset_metadata import encode_processor_metadata
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard.checks import check_reshard, find_journal, withdraw_if_unchanged
from headwater_spark.driver.reshard.entry_checks import check_entries
from headwater_spark.driver.reshard.entry_passes import OwnProcess, PassExecutor
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.plan import WRITERS, Reshard
from headwater_spark.driver.reshard.start import ReshardOptions, plan_from_cluster
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS
from tests.runtime.reshard.compared_applications import all_stores
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster

LAYOUT_OF = {
    "totals": "key",
    "minutes": "window",
    "closed-store": "windowed-key",
    "visits": "session",
    "regrouped": "key",
    "paid-outer-this-join-store": "window",
    "paid-outer-other-join-store": "window",
    "paid-outer-shared-join-store": "outer-join",
    "customers": "key",
    "contracts": "key",
    "owners": "key",
    "owner-subscription-store": "subscription",
}


TIME = 1_700_000_000_000


Counts = Mapping[str, int]


def _document() -> TopologyDocument:
    (document,) = load_text(
        json.dumps({"application": {"id": "app"}, "topology": all_stores(with_suppress=True)}), "app.yaml"
    ).documents
    return document


DOCUMENT = _document()


def report_stopped() -> None:
    """The application is stopped: do nothing."""


@attrs.frozen
class Application:
    """The stopped application on a cluster in memory; values of entries are their record keys and numbers."""

    cluster: ReshardMemoryCluster
    chance: random.Random

    @property
    def counts(self) -> Counts:
        return {topic: len(partitions) for topic, partitions in self.cluster.topics.items()}

    def write_entries(self, number: int) -> None:
        """Write entries and tombstones to each store, as tasks would."""
        for store, layout in LAYOUT_OF.items():
            topic = f"app-{store}-changelog"
            count = len(self.cluster.topics[topic])
            for _ in range(number):
                record_key = b"key %d" % self.chance.randrange(9)
                key, value = self._entry(layout, record_key)
                deletes = self.chance.random() < 0.3
                time = TIME + self.chance.randrange(1000)
                headers = (("v", b"3"),) if store == "closed-store" else ()
                partition = default_partition(record_key, count)
                self.cluster.write([(topic, partition, key, None if deletes else value, time, headers)])

    def write_input(self, topic: str, number: int, *, processed: int) -> None:
        """Write records, of which the application has processed some in each partition."""
        count = len(self.cluster.topics[topic])
        for each in range(number):
            key = b"key %d" % self.chance.randrange(9)
            left = b"left %d" % each
            value = self._subscription(left) if "registration" in topic else b"value %d" % each
            partition = default_partition(key, count)
            self.cluster.write([(topic, partition, key, value, TIME + self.chance.randrange(99), ())])
        for partition, records in enumerate(self.cluster.topics[topic]):
            offsets = [record[2] for record in records]
            done = min(processed, len(offsets))
            end = offsets[-1] + 1 if offsets else 0
            offset = offsets[done] if done < len(offsets) else end
            time = max((record[3] for record in records[:done]), default=-1)
            self.cluster.offsets[topic, partition] = Committed(offset, encode_processor_metadata(time, {}))

    def live(self) -> Mapping[tuple[str, bytes], tuple[int, bytes, int, object]]:
        """Return (topic, key) → (partition, value, time, headers); fail if a key is in two partitions."""
        found: dict[tuple[str, bytes], tuple[int, bytes, int, object]] = {}
        for store in LAYOUT_OF:
            topic = f"app-{store}-changelog"
            for partition, records in enumerate(self.cluster.topics[topic]):
                last = {record[4]: record for record in records}
                for key, record in last.items():
                    if record[5] is not None and key is not None:
                        assert (topic, key) not in found
                        found[topic, key] = partition, record[5], record[3], record[6]
        return found

    def unprocessed(self, topic: str) -> Mapping[bytes, list[bytes]]:
        """Return key → values of the records from the committed offsets on; each key in its partition."""
        found: dict[bytes, list[bytes]] = defaultdict(list)
        count = len(self.cluster.topics[topic])
        for partition, records in enumerate(self.cluster.topics[topic]):
            offset = self.cluster.offsets.get((topic, partition), Committed()).offset or 0
            for record in records:
                if record[2] >= offset:
                    assert default_partition(record[4] or b"", count) == partition
                    found[record[4] or b""].append(record[5] or b"")
        return found

    def plan(
        self, counts: Counts, executor: PassExecutor | None = None
    ) -> tuple[Reshard, ReshardExecution, bool]:
        journal = find_journal(DOCUMENT, self.counts, self.cluster)
        if journal is not None:
            journal = withdraw_if_unchanged("app", journal, self.counts, self.cluster)
        options = ReshardOptions(partitions=counts)
        reshard = plan_from_cluster(DOCUMENT, self.counts, options, journal, self.cluster)
        execution = ReshardExecution(
            reshard,
            self.cluster,
            {},
            journal,
            report_no_progress,
            check_stopped=report_stopped,
            executor=executor or OwnProcess(self.cluster, report_no_progress),
        )
        return reshard, execution, journal is not None

    def reshard(self, counts: Counts, executor: PassExecutor | None = None) -> None:
        reshard, execution, has_begun = self.plan(counts, executor)
        if not reshard.transfers:
            return
        if not has_begun:
            used = executor or OwnProcess(self.cluster, report_no_progress)
            found = [*check_reshard(reshard, self.cluster), *used.check_entries(reshard)]
            if found:
                raise ProblemsError(found)
        execution.run()

    def _entry(self, layout: str, record_key: bytes) -> tuple[bytes, bytes]:
        if layout == "subscription":
            left = b"left %d" % self.chance.randrange(5)
            return struct.pack(">i", len(record_key)) + record_key + left, self._subscription(left)
        given = LAYOUTS[layout]
        before = bytes(self.chance.randrange(2) for _ in range(given.before))
        after = bytes(self.chance.randrange(2) for _ in range(given.after))
        return before + record_key + after, b"value %d" % self.chance.randrange(1000)

    def _subscription(self, left: bytes) -> bytes:
        count = len(self.cluster.topics["contracts"])
        return b"\x01\x02" + b"h" * 16 + left + struct.pack(">i", default_partition(left, count))


def application(counts: Counts, seed: int) -> Application:
    compiled = compile_document(DOCUMENT, counts)
    assert not compiled.problems
    topics = {**counts, **{topic.name: topic.partitions for topic in compiled.internal_topics}}
    cluster = ReshardMemoryCluster({topic: [[] for _ in range(count)] for topic, count in topics.items()})
    app = Application(cluster, random.Random(seed))  # noqa: S311 - the same entries in each run
    for internal in compiled.internal_topics:
        if internal.kind is not TopicKind.CHANGELOG:
            app.write_input(internal.name, 12, processed=1)
    for topic in counts:
        app.write_input(topic, 12, processed=100)
    return app


def expected_entries(
    app: Application, after: Counts
) -> Mapping[tuple[str, bytes], tuple[int, bytes, int, object]]:
    """Return what `live` must return when `after` are the counts of the source topics."""
    compiled = compile_document(DOCUMENT, after)
    counts = {topic.name: topic.partitions for topic in compiled.internal_topics}
    found = {}
    for (topic, key), (_, value, time, headers) in app.live().items():
        layout = LAYOUTS[LAYOUT_OF[topic.removeprefix("app-").removesuffix("-changelog")]]
        if layout.is_subscription:
            left = key[4 + len(layout.record_key(key)) :]
            value = value[:-4] + struct.pack(">i", default_partition(left, after["contracts"]))  # noqa: PLW2901
        found[topic, key] = default_partition(layout.record_key(key), counts[topic]), value, time, headers
    return found


def inputs(counts: tuple[int, int, int]) -> Counts:
    orders, customers, contracts = counts
    return {"orders": orders, "payments": orders, "customers": customers, "contracts": contracts}


def operations_until_begun(app: Application) -> int:
    reshard, _, _ = app.plan(inputs((5, 2, 2)))
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    app.cluster.before_operation = count
    check_reshard(reshard, app.cluster)
    check_entries(reshard, app.cluster, report_no_progress)
    return done + 3 + WRITERS  # the layouts are known; the producers, and both sides of the commit
