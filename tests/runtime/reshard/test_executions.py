"""Reshards that are killed at any operation, with all kinds of stores, while topics are compacted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import SimpleNamespace

import attrs
import pytest
from confluent_kafka import KafkaException
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.compiler import compile_document
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.offset_metadata import decode_time
from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard.checks import deleted_topics, find_journal
from headwater_spark.driver.reshard.copy_plan import TopicCopy
from headwater_spark.driver.reshard.entry_checks import find_store_layout
from headwater_spark.driver.reshard.entry_totals import DIGEST_VERSION
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.journal import Journal, Phase
from headwater_spark.driver.reshard.start import ReshardOptions, plan_from_cluster
from headwater_spark.driver.reshard.state_copy import source_problems
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.serdes.internal_topics import named_partition, subscription_to
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.resharded_application import (
    DOCUMENT,
    LAYOUT_OF,
    TIME,
    Application,
    application,
    expected_entries,
    inputs,
    operations_until_begun,
    report_stopped,
)

_GROWING = st.lists(st.integers(1, 5), min_size=2, max_size=3).map(sorted)


@pytest.mark.parametrize("is_repaired", [False, True])
def test_a_subscription_that_names_another_partition_is_refused(*, is_repaired: bool) -> None:
    """Its response would go to a task without the left row. A later entry of its key replaces it."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    topic = "app-owner-subscription-store-changelog"
    entry = next(record for record in app.cluster.topics[topic][0] if record[5] is not None)
    value = entry[5] or b""
    other = subscription_to(value, 1 - named_partition(value))
    app.cluster.write([(*entry[:2], entry[4], other, TIME, ())])
    if is_repaired:
        app.cluster.write([(*entry[:2], entry[4], value, TIME, ())])
        app.reshard(inputs((5, 2, 5)))
        return
    before = app.counts
    with pytest.raises(ProblemsError) as raised:
        app.reshard(inputs((5, 2, 5)))
    assert [(each.code, each.topic) for each in raised.value.problems] == [
        (ProblemCode.MISPLACED_ENTRIES, topic)
    ]
    assert app.counts == before


@settings(max_examples=max(3, settings().max_examples // 4))
@given(_GROWING, _GROWING, _GROWING, st.integers(0, 2**16), st.lists(st.integers(0, 60), max_size=12))
def test_a_killed_reshard_is_completed_and_loses_nothing(
    orders: list[int], customers: list[int], contracts: list[int], seed: int, kills: list[int]
) -> None:
    steps = [inputs(each) for each in zip(orders, customers, contracts, strict=False)]
    app = application(steps[0], seed)
    app.write_entries(20)
    for after in steps[1:]:
        before, expected = app.counts, expected_entries(app, after)
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
                    for store in LAYOUT_OF:
                        app.cluster.compact(f"app-{store}-changelog")
        assert app.live() == expected
        compiled = compile_document(DOCUMENT, after)
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
        assert not waiting.keys() & {topic for topic, _ in app.cluster.unreadable}
        app.write_entries(5)


def test_a_continued_reshard_counts_the_records_of_earlier_executions() -> None:
    after, written = inputs((5, 2, 2)), []
    for is_killed in (False, True):
        app = application(inputs((2, 2, 2)), 1)
        app.write_entries(20)
        while is_killed:
            app.cluster.kill_after(operations_until_begun(app) + 40)
            with pytest.raises(KilledError):
                app.reshard(after)
            app.cluster.kill_after(None)
            journal = find_journal(DOCUMENT, app.counts, app.cluster)
            assert journal is not None
            if Phase.DONE in journal.phases.values():
                break
        _, execution, has_begun = app.plan(after)
        assert has_begun == is_killed
        execution.run()
        written.append(execution.written)
    assert written[0] == written[1] > 50


def test_source_topics_that_are_expanded_further_meanwhile_are_found_and_moved_by_the_next_run() -> None:
    app, after = application(inputs((2, 2, 2)), 1), inputs((5, 2, 2))
    app.write_entries(20)
    expected = expected_entries(app, inputs((7, 2, 2)))
    _, execution, _ = app.plan(after)
    for topic in ("orders", "payments"):
        app.cluster.topics[topic].extend([] for _ in range(5))
    with pytest.raises(ProblemsError) as raised:
        execution.run()
    (problem,) = raised.value.problems
    assert (problem.code, problem.found) == (ProblemCode.RESHARD_INCOMPLETE, "orders: 7, payments: 7")
    app.reshard({})
    assert app.live() == expected
    assert app.plan({})[0].transfers == ()


def _begun_application() -> tuple[Application, Journal]:
    """Return an application whose reshard was killed when entries had moved, and the journal."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.kill_after(operations_until_begun(app) + 40)
    with pytest.raises(KilledError):
        app.reshard(inputs((5, 2, 2)))
    app.cluster.kill_after(None)
    journal = find_journal(DOCUMENT, app.counts, app.cluster)
    assert journal is not None
    return app, journal


def test_topics_that_were_deleted_after_a_reshard_had_begun_are_named() -> None:
    app, journal = _begun_application()
    for topic in ("orders", "payments"):
        del app.cluster.topics[topic]
    assert find_journal(DOCUMENT, app.counts, app.cluster) == journal, (
        "although no internal topic has a count"
    )
    compiled = compile_document(DOCUMENT, app.counts)
    found = deleted_topics(compiled, journal, app.counts)
    assert [(each.topic, "--partitions 2`" in each.fix) for each in found] == [
        ("orders", True),
        ("payments", True),
    ]
    del app.cluster.topics["app-minutes-changelog"]
    (problem,) = deleted_topics(compiled, journal, app.counts)
    assert problem.found == "no topic app-minutes-changelog"


def test_a_journal_whose_first_topic_was_deleted_is_not_complete() -> None:
    """Brokers remove the offsets of a deleted topic, and with them the part of the journal."""
    app, journal = _begun_application()
    del app.cluster.topics[journal.root]
    for each in [each for each in app.cluster.offsets if each[0] == journal.root]:
        del app.cluster.offsets[each]
    with pytest.raises(ProblemsError) as raised:
        find_journal(DOCUMENT, app.counts, app.cluster)
    (problem,) = raised.value.problems
    assert problem.code is ProblemCode.UNREADABLE_RECORD
    assert problem.found == "parts of the journal are missing"


def test_all_records_of_a_key_move_in_their_order() -> None:
    """A versioned store restores its history from them."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(60)

    def histories() -> Mapping[tuple[str, int, bytes | None], list[tuple[int, bool]]]:
        found: dict[tuple[str, int, bytes | None], list[tuple[int, bool]]] = defaultdict(list)
        for store in LAYOUT_OF:
            topic = f"app-{store}-changelog"
            for partition, records in enumerate(app.cluster.topics[topic]):
                for record in records:
                    found[topic, partition, record[4]].append((record[3], record[5] is None))
        return found

    before = histories()
    app.reshard(inputs((5, 4, 5)))
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
    app = application(inputs((2, 2, 2)), 1)
    other = 1 - default_partition(b"key", 2)
    app.cluster.write([("app-totals-changelog", other, b"key", b"value", TIME, ())])
    with pytest.raises(ProblemsError) as raised:
        app.reshard(inputs((4, 2, 2)))
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.MISPLACED_ENTRIES]
    assert raised.value.problems[0].topic == "app-totals-changelog"


@pytest.mark.parametrize("phase", [Phase.COPY, Phase.CLEAR])
def test_entries_that_expire_during_an_interruption_do_not_prevent_the_reshard(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, topic = 24 * 60 * 60 * 1000, "app-minutes-changelog"
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)

    def find() -> Journal | None:
        return find_journal(DOCUMENT, app.counts, app.cluster)

    def run(now: int) -> None:
        clock = SimpleNamespace(time=lambda: now / 1000)
        monkeypatch.setattr("headwater_spark.driver.reshard.execution.time", clock)
        options = ReshardOptions(partitions=inputs((5, 2, 2)))
        reshard = plan_from_cluster(DOCUMENT, app.counts, options, find(), app.cluster)
        ReshardExecution(
            reshard, app.cluster, {topic: 10 * day}, find(), report_no_progress, check_stopped=report_stopped
        ).run()

    def die_in_phase() -> None:
        is_copied = len(app.cluster.topics[topic]) == 5 and any(app.cluster.topics[topic][2:])
        journal = find() if is_copied else None
        if journal is not None and journal.phases[topic] is phase:
            raise KilledError

    app.cluster.before_operation = die_in_phase
    with pytest.raises(KilledError):
        run(TIME)
    app.cluster.kill_after(None)
    for records in app.cluster.topics[topic]:
        del records[: len(records) // 2]

    def expire() -> None:
        """Delete copies while they are compared."""
        for records in app.cluster.topics[topic][3:]:
            records.clear()

    app.cluster.before_operation = expire
    run(TIME + 12 * day)
    assert app.counts["orders"] == 5


def test_entries_before_many_tombstones_show_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater_spark.driver.reshard.entry_checks._SAMPLE", 2)
    topic, store = "app-closed-store-changelog", StateStore("closed", ChangelogKind.KEY_VALUE)
    app = application(inputs((3, 1, 1)), 1)
    keys = [b"key %d" % each for each in range(60)]
    for suffix, value in ((b"12345678", b"value"), (b"another1", None)):
        app.cluster.write((topic, default_partition(key, 3), key + suffix, value, 1, ()) for key in keys)
    found = find_store_layout(app.cluster, store, topic, 3)
    assert [layout.name for layout in found] == ["windowed-key"]


def test_a_reshard_and_a_copy_that_are_not_complete_exclude_each_other() -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    compiled = compile_document(DOCUMENT, app.counts)
    [target] = [each for each in compiled.internal_topics if each.name == "app-totals-changelog"]
    copies = [TopicCopy("app-old-changelog", target, 2)]
    app.cluster.topics["app-old-changelog"] = [[], []]
    assert list(source_problems("app", copies, app.cluster)) == []
    journal = Journal({target.name: (2, 2)}, {}, {target.name: Phase.COPY})
    app.cluster.offsets |= {each: Committed(*commit) for each, commit in journal.commits(target.name).items()}
    with pytest.raises(ProblemsError, match="A copy of state of app is not complete: app-totals-changelog"):
        app.reshard(inputs((5, 2, 2)))
    app.cluster.offsets["app-old-changelog", 0] = app.cluster.offsets[target.name, 0]
    [problem] = source_problems("app", copies, app.cluster)
    assert "app-old-changelog is not complete" in problem.summary


def test_a_document_from_code_can_be_completed_when_entries_have_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then the entries do not show their layouts any more: it is in the journal."""
    start = "headwater_spark.driver.reshard.start.build_programs"
    monkeypatch.setattr(start, lambda *given: tuple(map(_without_formats, build_programs(*given))))
    monkeypatch.setattr("headwater_spark.engine.scaling.entry_layouts._CHANCE", 5)
    app = application(inputs((3, 3, 3)), 1)
    app.write_entries(60)
    after = inputs((5, 4, 5))
    expected = expected_entries(app, after)
    for operations in range(300, 6000, 300):
        app.cluster.kill_after(operations)
        with suppress(KilledError):
            app.reshard(after)
            break
        app.cluster.kill_after(None)
        for store in LAYOUT_OF:
            app.cluster.compact(f"app-{store}-changelog")
    app.cluster.kill_after(None)
    assert operations > 600
    assert app.live() == expected


def _without_formats(program: SubtopologyProgram) -> SubtopologyProgram:
    return attrs.evolve(program, stores=tuple(attrs.evolve(store, keeps=None) for store in program.stores))


def test_another_target_is_refused_until_the_reshard_is_complete() -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.kill_after(100)
    with pytest.raises(KilledError):
        app.reshard(inputs((4, 2, 2)))
    app.cluster.kill_after(None)
    with pytest.raises(ProblemsError) as raised:
        app.reshard(inputs((6, 2, 2)))
    assert [problem.code for problem in raised.value.problems] == [ProblemCode.RESHARD_INCOMPLETE]
    app.reshard({})
    assert app.counts["orders"] == 4


def test_an_execution_that_another_one_has_replaced_does_not_set_offsets_back() -> None:
    """The other one completes the reshard, and the application runs, before offsets are committed again."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = inputs((5, 2, 2))
    _, execution, _ = app.plan(after)
    read, processed, is_replaced = app.cluster.committed, Committed(99, "text"), False

    def committed(
        partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> Mapping[TopicPartition, Committed]:
        nonlocal is_replaced
        found = read(partitions, stable=stable)
        if not is_replaced and ("orders", 0) in found:
            journal = find_journal(DOCUMENT, app.counts, app.cluster)
            if journal is not None and journal.has_offsets:
                is_replaced = True
                app.reshard(after)
                app.cluster.offsets["orders", 0] = processed
        return found

    app.cluster.committed = committed  # type: ignore[method-assign]
    with pytest.raises(KafkaException):
        execution.run()
    assert is_replaced
    assert app.cluster.offsets["orders", 0] == processed


@pytest.mark.parametrize("operations", [100, 250])
def test_an_execution_does_not_continue_what_another_one_has_changed(operations: int) -> None:
    """Its plan is out of date: it would delete entries that the other one has moved."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = inputs((5, 2, 2))
    expected = expected_entries(app, after)
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


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_reshard_with_other_digests_is_continued(is_complete: bool) -> None:  # noqa: FBT001
    """Its numbers of entries are compared: the digests of another version mean nothing."""
    topic = "app-totals-changelog"
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(60)
    after = inputs((5, 2, 2))
    expected = expected_entries(app, after)

    def die_in_phase() -> None:
        journal = (
            find_journal(DOCUMENT, app.counts, app.cluster) if len(app.cluster.topics[topic]) == 5 else None
        )
        if journal is not None and journal.phases[topic] is Phase.CLEAR:
            raise KilledError

    app.cluster.before_operation = die_in_phase
    with pytest.raises(KilledError):
        app.reshard(after)
    app.cluster.kill_after(None)
    journal = find_journal(DOCUMENT, app.counts, app.cluster)
    assert journal is not None
    assert journal.versions[topic] == DIGEST_VERSION
    totals = [attrs.evolve(each, digest=7) for each in journal.totals[topic]]
    other = attrs.evolve(journal, totals={**journal.totals, topic: tuple(totals)}, versions={})
    app.cluster.offsets |= {each: Committed(*commit) for each, commit in other.commits(topic).items()}
    if is_complete:
        app.reshard(after)
        assert app.live() == expected
        return
    last = max((each for each in app.cluster.topics[topic][2:]), key=len)
    last.clear()
    with pytest.raises(ProblemsError) as raised:
        app.reshard(after)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.RESHARD_INCOMPLETE}
