"""Reshards that are killed at any operation, with all kinds of stores, while topics are compacted."""

import json
import random
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.compiler import compile_document
from headwater.model.compiled import TopicKind
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.offset_metadata import decode_time, encode_processor_metadata
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import unreported
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard import problems
from headwater_spark.driver.reshard.entry_checks import check_entries, find_store_layout
from headwater_spark.driver.reshard.execution import ReshardExecution, check_reshard, withdraw_if_unchanged
from headwater_spark.driver.reshard.journal import Journal, Phase, read_journal
from headwater_spark.driver.reshard.plan import WRITERS, Reshard
from headwater_spark.driver.reshard.start import (
    ReshardOptions,
    find_journal,
    forgotten_offsets,
    plan_from_cluster,
)
from headwater_spark.driver.reshard.state_copy import TopicCopy, source_problems, target_problems
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.compared_applications import all_stores
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster

_LAYOUT_OF = {
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
_TIME = 1_700_000_000_000
Counts = Mapping[str, int]


def _document() -> TopologyDocument:
    (document,) = load_text(
        json.dumps({"application": {"id": "app"}, "topology": all_stores(with_suppress=True)}), "app.yaml"
    ).documents
    return document


_DOCUMENT = _document()


def _stopped() -> None:
    """The application is stopped: do nothing."""


@attrs.frozen
class _Application:
    """The stopped application on a cluster in memory; values of entries are their record keys and numbers."""

    cluster: ReshardMemoryCluster
    chance: random.Random

    @property
    def counts(self) -> Counts:
        return {topic: len(partitions) for topic, partitions in self.cluster.topics.items()}

    def write_entries(self, number: int) -> None:
        """Write entries and tombstones to each store, as tasks would."""
        for store, layout in _LAYOUT_OF.items():
            topic = f"app-{store}-changelog"
            count = len(self.cluster.topics[topic])
            for _ in range(number):
                record_key = b"key %d" % self.chance.randrange(9)
                key, value = self._entry(layout, record_key)
                deletes = self.chance.random() < 0.3
                time = _TIME + self.chance.randrange(1000)
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
            self.cluster.write([(topic, partition, key, value, _TIME + self.chance.randrange(99), ())])
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
        for store in _LAYOUT_OF:
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

    def plan(self, counts: Counts) -> tuple[Reshard, ReshardExecution, bool]:
        journal = find_journal(_DOCUMENT, self.counts, self.cluster)
        if journal is not None:
            journal = withdraw_if_unchanged("app", journal, self.counts, self.cluster)
        options = ReshardOptions(partitions=counts)
        reshard = plan_from_cluster(_DOCUMENT, self.counts, options, journal, self.cluster)
        execution = ReshardExecution(reshard, self.cluster, {}, journal, unreported, check_stopped=_stopped)
        return reshard, execution, journal is not None

    def reshard(self, counts: Counts) -> None:
        reshard, execution, has_begun = self.plan(counts)
        if not reshard.transfers:
            return
        if not has_begun:
            found = [*check_reshard(reshard, self.cluster), *check_entries(reshard, self.cluster, unreported)]
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


def _application(counts: Counts, seed: int) -> _Application:
    compiled = compile_document(_DOCUMENT, counts)
    assert not compiled.problems
    topics = {**counts, **{topic.name: topic.partitions for topic in compiled.internal_topics}}
    cluster = ReshardMemoryCluster({topic: [[] for _ in range(count)] for topic, count in topics.items()})
    app = _Application(cluster, random.Random(seed))  # noqa: S311 - the same entries in each run
    for internal in compiled.internal_topics:
        if internal.kind is not TopicKind.CHANGELOG:
            app.write_input(internal.name, 12, processed=1)
    for topic in counts:
        app.write_input(topic, 12, processed=100)
    return app


def _expected(app: _Application, after: Counts) -> Mapping[tuple[str, bytes], tuple[int, bytes, int, object]]:
    """Return what `live` must return when `after` are the counts of the source topics."""
    compiled = compile_document(_DOCUMENT, after)
    counts = {topic.name: topic.partitions for topic in compiled.internal_topics}
    found = {}
    for (topic, key), (_, value, time, headers) in app.live().items():
        layout = LAYOUTS[_LAYOUT_OF[topic.removeprefix("app-").removesuffix("-changelog")]]
        if layout.is_subscription:
            left = key[4 + len(layout.record_key(key)) :]
            value = value[:-4] + struct.pack(">i", default_partition(left, after["contracts"]))  # noqa: PLW2901
        found[topic, key] = default_partition(layout.record_key(key), counts[topic]), value, time, headers
    return found


def _inputs(counts: tuple[int, int, int]) -> Counts:
    orders, customers, contracts = counts
    return {"orders": orders, "payments": orders, "customers": customers, "contracts": contracts}


_GROWING = st.lists(st.integers(1, 5), min_size=2, max_size=3).map(sorted)


@settings(max_examples=max(3, settings().max_examples // 4))
@given(_GROWING, _GROWING, _GROWING, st.integers(0, 2**16), st.lists(st.integers(0, 60), max_size=12))
def test_a_killed_reshard_is_completed_and_loses_nothing(
    orders: list[int], customers: list[int], contracts: list[int], seed: int, kills: list[int]
) -> None:
    steps = [_inputs(each) for each in zip(orders, customers, contracts, strict=False)]
    app = _application(steps[0], seed)
    app.write_entries(20)
    for after in steps[1:]:
        before, expected = app.counts, _expected(app, after)
        waiting = {topic: app.unprocessed(topic) for topic in before if "-changelog" not in topic}
        times = {
            topic: max(decode_time(app.cluster.offsets[topic, each].text) for each in range(count))
            for topic, count in before.items()
            if "-changelog" not in topic
        }
        for operations in [*kills, None]:
            app.cluster.kill_after(operations)
            try:
                app.reshard(after)
            except KilledError:
                app.cluster.kill_after(None)
                if operations is not None and operations % 3 == 0:
                    for store in _LAYOUT_OF:
                        app.cluster.compact(f"app-{store}-changelog")
        assert app.live() == expected
        compiled = compile_document(_DOCUMENT, after)
        assert {
            topic.name: topic.partitions for topic in compiled.internal_topics
        }.items() <= app.counts.items()
        for topic, records in waiting.items():
            found = app.unprocessed(topic)
            if "registration" in topic:
                assert {key: len(each) for key, each in found.items()} == {
                    key: len(each) for key, each in records.items()
                }
            else:
                assert found == records
            texts = [app.cluster.offsets[topic, each].text for each in range(app.counts[topic])]
            assert max(map(decode_time, texts)) == times[topic]
        app.write_entries(5)


def test_all_records_of_a_key_move_in_their_order() -> None:
    """A versioned store restores its history from them."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(60)

    def histories() -> Mapping[tuple[str, int, bytes | None], list[tuple[int, bool]]]:
        found: dict[tuple[str, int, bytes | None], list[tuple[int, bool]]] = defaultdict(list)
        for store in _LAYOUT_OF:
            topic = f"app-{store}-changelog"
            for partition, records in enumerate(app.cluster.topics[topic]):
                for record in records:
                    found[topic, partition, record[4]].append((record[3], record[5] is None))
        return found

    before = histories()
    app.reshard(_inputs((5, 4, 5)))
    after = histories()
    moved = [
        (topic, partition, key)
        for topic, partition, key in after
        if (topic, partition, key) not in before and partition >= 2
    ]
    assert len(moved) > 20
    for topic, partition, key in moved:
        [old] = [before[topic, each, key] for each in range(2) if (topic, each, key) in before]
        assert after[topic, partition, key] == old


def test_an_entry_in_another_partition_is_refused() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    other = 1 - default_partition(b"key", 2)
    app.cluster.write([("app-totals-changelog", other, b"key", b"value", _TIME, ())])
    with pytest.raises(ProblemsError) as raised:
        app.reshard(_inputs((4, 2, 2)))
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.MISPLACED_ENTRIES]
    assert raised.value.problems[0].topic == "app-totals-changelog"


@pytest.mark.parametrize("is_expanded", [False, True])
def test_an_unprocessed_record_of_a_key_that_moves_is_refused_or_written_again(*, is_expanded: bool) -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.write_input("orders", 30, processed=2)
    waiting = app.unprocessed("orders")
    after = _inputs((5, 2, 2))
    with pytest.raises(ProblemsError) as raised:
        app.reshard(after)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.UNPROCESSED_RECORDS}
    journal = find_journal(_DOCUMENT, app.counts, app.cluster)
    assert journal is None
    options = ReshardOptions(partitions=after, rewritten=frozenset({"orders"}))
    if is_expanded:
        app.cluster.expand({"orders": 5, "payments": 5})
    for operations in range(0, 10_000, 40):
        app.cluster.kill_after(operations)
        with suppress(KilledError):
            journal = find_journal(_DOCUMENT, app.counts, app.cluster)
            reshard = plan_from_cluster(_DOCUMENT, app.counts, options, journal, app.cluster)
            if journal is None:
                assert check_reshard(reshard, app.cluster) == []
            ReshardExecution(reshard, app.cluster, {}, journal, unreported, check_stopped=_stopped).run()
            break
    assert operations > 40
    assert app.counts["orders"] == 5
    assert app.unprocessed("orders") == waiting


def test_a_record_that_is_written_during_the_reshard_has_advice_that_completes_it() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = _inputs((5, 2, 2))
    app.cluster.kill_after(150)
    with pytest.raises(KilledError):
        app.reshard(after)
    app.cluster.kill_after(None)
    key = next(key for key in (b"key %d" % each for each in range(99)) if default_partition(key, 5) == 4)
    app.cluster.write([("orders", default_partition(key, 2), key, b"new", _TIME, ())])
    waiting = app.unprocessed("orders")
    with pytest.raises(ProblemsError) as raised:
        app.reshard(after)
    [problem] = raised.value.problems
    assert "--rewrite-unprocessed orders" in problem.fix
    assert "start the application" not in problem.fix
    assert "Nothing was changed" not in problem.why
    options = ReshardOptions(rewritten=frozenset({"orders"}))
    journal = find_journal(_DOCUMENT, app.counts, app.cluster)
    assert journal is not None
    reshard = plan_from_cluster(_DOCUMENT, app.counts, options, journal, app.cluster)
    ReshardExecution(reshard, app.cluster, {}, journal, unreported, check_stopped=_stopped).run()
    assert app.counts["orders"] == 5
    assert app.unprocessed("orders") == waiting


def test_an_application_that_starts_before_a_topic_is_expanded_loses_nothing() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.kill_after(_operations_until_begun(app))
    with pytest.raises(KilledError):
        app.reshard(_inputs((5, 2, 2)))
    app.cluster.kill_after(None)
    assert find_journal(_DOCUMENT, app.counts, app.cluster) is not None
    app.write_entries(10)  # Kafka Streams starts: the counts fit
    after = _inputs((4, 3, 2))  # another request is possible, too
    expected = _expected(app, after)
    app.reshard(after)
    assert app.live() == expected


@pytest.mark.parametrize("kill", [None, 1, 9, 200])
def test_an_application_that_starts_after_the_checks_loses_nothing(kill: int | None) -> None:
    """It writes until the first topic is expanded; then the ends are committed again."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = _inputs((5, 2, 2))
    expected: list[Mapping[tuple[str, bytes], tuple[int, bytes, int, object]]] = []
    operations = 0

    def start_once() -> None:
        nonlocal operations
        journal = find_journal(_DOCUMENT, app.counts, app.cluster)
        if journal is not None and not expected:
            app.write_entries(10)
            expected.append(_expected(app, after))
        operations += bool(expected)
        if kill is not None and operations > kill:
            app.cluster.kill_after(None)
            raise KilledError

    app.cluster.before_operation = start_once
    with suppress(KilledError):
        app.reshard(after)
    app.cluster.kill_after(None)
    app.reshard(after)
    assert app.counts["orders"] == 5
    assert [app.live()] == expected


def test_counts_do_not_fit_until_the_last_step() -> None:
    """Also if a source topic has its new count already, and its changelog topic is the largest one."""
    steps: list[dict[str, object]] = [
        {"table": {"topic": "customers", "materialized": "rows"}},
        {"stream": {"topic": "orders"}},
        {"groupByKey": {}},
        {"count": {"materialized": "totals"}},
    ]
    text = json.dumps({"application": {"id": "app"}, "topology": steps})
    (document,) = load_text(text, "app.yaml").documents
    changelogs = {"customers": "app-rows-changelog", "orders": "app-totals-changelog"}
    cluster = ReshardMemoryCluster({topic: [[], []] for pair in changelogs.items() for topic in pair})
    for topic, number in (("orders", 10), ("customers", 40)):
        for key in (b"key %d" % each for each in range(number)):
            partition = default_partition(key, 2)
            cluster.write([(each, partition, key, b"1", _TIME, ()) for each in (topic, changelogs[topic])])
        for partition, records in enumerate(cluster.topics[topic]):
            cluster.offsets[topic, partition] = Committed(records[-1][2] + 1)
    cluster.expand({"customers": 4})

    def counts() -> Counts:
        return {topic: len(partitions) for topic, partitions in cluster.topics.items()}

    fitting: list[str] = []

    def note_fitting_counts() -> None:
        found = counts()
        if all(found[topic] == found[changelog] for topic, changelog in changelogs.items()):
            journal = find_journal(document, found, cluster)
            fitting.extend(() if journal is None else [phase.name for phase in journal.phases.values()])

    options = ReshardOptions(partitions={"orders": 4})
    reshard = plan_from_cluster(document, counts(), options, None, cluster)
    cluster.before_operation = note_fitting_counts
    ReshardExecution(reshard, cluster, {}, None, unreported, check_stopped=_stopped).run()
    assert set(counts().values()) == {4}
    assert set(fitting) <= {"DONE"}


@attrs.frozen
class _OneStore:
    """An application with one store. Its unprocessed records are in `rewritten`, and are written again."""

    document: TopologyDocument
    cluster: ReshardMemoryCluster
    rewritten: str
    changelog: str = "app-totals-changelog"

    @property
    def counts(self) -> Counts:
        return {topic: len(partitions) for topic, partitions in self.cluster.topics.items()}

    @property
    def journal(self) -> Journal | None:
        return find_journal(self.document, self.counts, self.cluster)

    def reshard(self) -> None:
        rewritten = frozenset({self.rewritten} & {"orders"})
        options = ReshardOptions(partitions={"orders": 4}, rewritten=rewritten)
        reshard = plan_from_cluster(self.document, self.counts, options, self.journal, self.cluster)
        execution = ReshardExecution(
            reshard, self.cluster, {}, self.journal, unreported, check_stopped=_stopped
        )
        execution.run()

    def check_counts(self) -> None:
        """Check that the application cannot start until all entries are moved."""
        if set(self.counts.values()) == {4}:
            journal = self.journal
            assert journal is None or journal.phases == {self.changelog: Phase.DONE}


def _one_store(*, is_rekeyed: bool) -> _OneStore:
    """Return an application whose store has 30 entries, with 22 unprocessed records.

    They are in a repartition topic if `is_rekeyed`, and the source topic has the new count already.
    Otherwise they are in the source topic, which has the old one.
    """
    group = {"groupBy": {"key": "value", "name": "by-value"}} if is_rekeyed else {"groupByKey": {}}
    steps = [{"stream": {"topic": "orders"}}, group, {"count": {"materialized": "totals"}}]
    text = json.dumps({"application": {"id": "app"}, "topology": steps})
    (document,) = load_text(text, "app.yaml").documents
    rewritten = "app-by-value-repartition" if is_rekeyed else "orders"
    topics = {"orders", rewritten, "app-totals-changelog"}
    cluster = ReshardMemoryCluster({topic: [[], []] for topic in topics})
    for key in (b"key %d" % each for each in range(30)):
        partition = default_partition(key, 2)
        written = (rewritten, "app-totals-changelog")
        cluster.write([(topic, partition, key, b"1", _TIME, ()) for topic in written])
    for partition in range(2):
        cluster.offsets["orders", partition] = Committed(0)
        cluster.offsets[rewritten, partition] = Committed(cluster.topics[rewritten][partition][4][2])
    if is_rekeyed:
        cluster.expand({"orders": 4})
    return _OneStore(document, cluster, rewritten)


@pytest.mark.parametrize("is_rekeyed", [True, False])
def test_counts_do_not_fit_until_the_entries_of_the_only_store_are_moved(*, is_rekeyed: bool) -> None:
    app = _one_store(is_rekeyed=is_rekeyed)
    for operations in range(0, 2000, 10):
        app.cluster.kill_after(operations)
        kill = app.cluster.before_operation

        def check_and_kill(kill: Callable[[], None] = kill) -> None:
            app.check_counts()
            kill()

        app.cluster.before_operation = check_and_kill
        with suppress(KilledError):
            app.reshard()
            break
        app.cluster.compact(app.changelog)
    assert operations > 20
    assert set(app.counts.values()) == {4}
    offsets = app.cluster.offsets
    unprocessed = [
        (partition, record[4] or b"")
        for partition, records in enumerate(app.cluster.topics[app.rewritten])
        for record in records
        if record[2] >= (offsets[app.rewritten, partition].offset or 0)
    ]
    assert all(default_partition(key, 4) == partition for partition, key in unprocessed)
    assert len({key for _, key in unprocessed}) == len(unprocessed) == 22


def test_counts_do_not_fit_while_unprocessed_records_cannot_be_written_again() -> None:
    app = _one_store(is_rekeyed=True)
    app.cluster.write([(app.rewritten, 1 - default_partition(b"key", 2), b"key", b"1", _TIME, ())])
    with pytest.raises(ProblemsError, match="The unprocessed record at offset"):
        app.reshard()
    assert app.counts[app.rewritten] == 2


def test_an_application_that_runs_when_its_topics_are_expanded_is_waited_for() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = _inputs((5, 2, 2))
    reshard, _, _ = app.plan(after)
    expected = _expected(app, after)

    def is_running() -> None:
        raise ProblemsError([problems.group_active("app", "Stable", 0, has_begun=True)])

    with pytest.raises(ProblemsError):
        ReshardExecution(reshard, app.cluster, {}, None, unreported, check_stopped=is_running).run()
    assert app.live().keys() == expected.keys()
    assert app.counts["orders"] == 2
    app.reshard({})
    assert app.live() == expected
    assert app.counts["orders"] == 5


def test_forgotten_offsets_are_reported_although_no_topic_has_to_be_expanded() -> None:
    """A reshard whose last topic was expanded, and whose journal brokers have forgotten."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    assert app.plan({})[0].transfers == ()
    assert list(forgotten_offsets(_DOCUMENT, app.counts, app.cluster)) == []
    app.cluster.offsets.clear()
    [problem] = forgotten_offsets(_DOCUMENT, app.counts, app.cluster)
    assert "app has state, but no committed offsets" in problem.summary


def _operations_until_begun(app: _Application) -> int:
    reshard, _, _ = app.plan(_inputs((5, 2, 2)))
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    app.cluster.before_operation = count
    check_reshard(reshard, app.cluster)
    check_entries(reshard, app.cluster, unreported)
    return done + 3 + WRITERS  # the layouts are known; the producers, and both sides of the commit


@pytest.mark.parametrize("phase", [Phase.COPY, Phase.CLEAR])
def test_entries_that_expire_during_an_interruption_do_not_prevent_the_reshard(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, topic = 24 * 60 * 60 * 1000, "app-minutes-changelog"
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)

    def find() -> Journal | None:
        return find_journal(_DOCUMENT, app.counts, app.cluster)

    def run(now: int) -> None:
        clock = SimpleNamespace(time=lambda: now / 1000)
        monkeypatch.setattr("headwater_spark.driver.reshard.execution.time", clock)
        options = ReshardOptions(partitions=_inputs((5, 2, 2)))
        reshard = plan_from_cluster(_DOCUMENT, app.counts, options, find(), app.cluster)
        ReshardExecution(
            reshard, app.cluster, {topic: 10 * day}, find(), unreported, check_stopped=_stopped
        ).run()

    def die_in_phase() -> None:
        is_copied = len(app.cluster.topics[topic]) == 5 and any(app.cluster.topics[topic][2:])
        journal = find() if is_copied else None
        if journal is not None and journal.phases[topic] is phase:
            raise KilledError

    app.cluster.before_operation = die_in_phase
    with pytest.raises(KilledError):
        run(_TIME)
    app.cluster.kill_after(None)
    for records in app.cluster.topics[topic]:
        del records[: len(records) // 2]

    def expire() -> None:
        """Delete copies while they are compared."""
        for records in app.cluster.topics[topic][3:]:
            records.clear()

    app.cluster.before_operation = expire
    run(_TIME + 12 * day)
    assert app.counts["orders"] == 5


def test_entries_before_many_tombstones_show_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater_spark.driver.reshard.entry_checks._SAMPLE", 2)
    topic, store = "app-closed-store-changelog", StateStore("closed", ChangelogKind.KEY_VALUE)
    app = _application(_inputs((3, 1, 1)), 1)
    keys = [b"key %d" % each for each in range(60)]
    for suffix, value in ((b"12345678", b"value"), (b"another1", None)):
        app.cluster.write((topic, default_partition(key, 3), key + suffix, value, 1, ()) for key in keys)
    found = find_store_layout(app.cluster, store, topic, 3)
    assert [layout.name for layout in found] == ["windowed-key"]


def test_a_reshard_and_a_copy_that_are_not_complete_exclude_each_other() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    compiled = compile_document(_DOCUMENT, app.counts)
    [target] = [each for each in compiled.internal_topics if each.name == "app-totals-changelog"]
    copies = [TopicCopy("app-old-changelog", target, 2)]
    app.cluster.topics["app-old-changelog"] = [[], []]
    assert list(source_problems("app", copies, app.cluster)) == []
    journal = Journal({target.name: (2, 2)}, {}, {target.name: Phase.COPY})
    app.cluster.offsets |= {each: Committed(*commit) for each, commit in journal.commits(target.name).items()}
    with pytest.raises(ProblemsError, match="A copy of state of app is not complete: app-totals-changelog"):
        app.reshard(_inputs((5, 2, 2)))
    app.cluster.offsets["app-old-changelog", 0] = app.cluster.offsets[target.name, 0]
    [problem] = source_problems("app", copies, app.cluster)
    assert "app-old-changelog is not complete" in problem.summary


def test_unprocessed_records_are_not_copied_twice() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    [target] = [
        each
        for each in compile_document(_DOCUMENT, app.counts).internal_topics
        if each.name.endswith("-repartition")
    ]
    app.cluster.topics[target.name] = [[], []]  # processed, and deleted by Kafka Streams
    copies = [TopicCopy("app-old-repartition", target, 2)]
    [problem] = target_problems(copies, app.cluster)
    assert "has offsets for it already" in problem.summary
    for partition in range(2):
        del app.cluster.offsets[target.name, partition]
    assert list(target_problems(copies, app.cluster)) == []


def test_state_without_offsets_is_refused() -> None:
    """Brokers forget the offsets of an application that was stopped for a week."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.offsets.clear()
    with pytest.raises(ProblemsError, match="app has state, but no committed offsets"):
        app.reshard(_inputs((5, 2, 2)))


def test_a_document_from_code_can_be_completed_when_entries_have_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then the entries do not show their layouts any more: it is in the journal."""
    start = "headwater_spark.driver.reshard.start.build_programs"
    monkeypatch.setattr(start, lambda *given: tuple(map(_without_formats, build_programs(*given))))
    monkeypatch.setattr("headwater_spark.engine.scaling.entry_layouts._CHANCE", 5)
    app = _application(_inputs((3, 3, 3)), 1)
    app.write_entries(60)
    after = _inputs((5, 4, 5))
    expected = _expected(app, after)
    for operations in range(300, 6000, 300):
        app.cluster.kill_after(operations)
        with suppress(KilledError):
            app.reshard(after)
            break
        app.cluster.kill_after(None)
        for store in _LAYOUT_OF:
            app.cluster.compact(f"app-{store}-changelog")
    app.cluster.kill_after(None)
    assert operations > 600
    assert app.live() == expected


def _without_formats(program: SubtopologyProgram) -> SubtopologyProgram:
    return attrs.evolve(program, stores=tuple(attrs.evolve(store, keeps=None) for store in program.stores))


def test_counts_fit_only_when_subscriptions_are_replaced() -> None:
    """The topic of the subscriptions keeps its count: it is not the last one, although it is the smallest."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    topic = "app-owner-subscription-store-changelog"
    after = _inputs((2, 2, 4))
    targets = {each.name: each.partitions for each in compile_document(_DOCUMENT, after).internal_topics}
    app.cluster.topics[topic] = [[], []]
    app.cluster.expand({"contracts": 4})
    phases = []

    def note_phase() -> None:
        if targets.items() <= app.counts.items():
            committed = app.cluster.committed([(name, 0) for name in app.counts if "-changelog" in name])
            journal = read_journal(committed)
            phases.append(None if journal is None else journal.phases[topic])

    app.cluster.before_operation = note_phase
    app.reshard(after)
    assert phases
    assert set(phases) <= {Phase.DONE, None}
    assert app.counts[topic] == 2


def test_repartition_topics_without_offsets_are_written_again_and_skipped() -> None:
    """An application that was killed before its first commit reads them from the beginning."""
    app = _application(_inputs((2, 2, 2)), 1)
    topics = [topic for topic in app.counts if topic.endswith("-repartition")]
    assert topics
    for topic in topics:
        for partition in range(app.counts[topic]):
            del app.cluster.offsets[topic, partition]
    waiting = {topic: app.unprocessed(topic) for topic in topics}
    app.reshard(_inputs((5, 3, 2)))
    assert {topic: app.unprocessed(topic) for topic in topics} == waiting


def test_another_target_is_refused_until_the_reshard_is_complete() -> None:
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.kill_after(100)
    with pytest.raises(KilledError):
        app.reshard(_inputs((4, 2, 2)))
    app.cluster.kill_after(None)
    with pytest.raises(ProblemsError) as raised:
        app.reshard(_inputs((6, 2, 2)))
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.RESHARD_INCOMPLETE]
    app.reshard({})
    assert app.counts["orders"] == 4


@pytest.mark.parametrize("operations", [100, 250])
def test_an_execution_does_not_continue_what_another_one_has_changed(operations: int) -> None:
    """Its plan is out of date: it would delete entries that the other one has moved."""
    app = _application(_inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = _inputs((5, 2, 2))
    expected = _expected(app, after)
    for _ in range(2):
        _, execution, _ = app.plan(after)
        app.cluster.kill_after(operations)
        with suppress(KilledError):
            app.reshard(after)
        app.cluster.kill_after(None)
        with pytest.raises(ProblemsError, match="another client has executed it meanwhile"):
            execution.run()
    app.reshard(after)
    assert app.live() == expected
