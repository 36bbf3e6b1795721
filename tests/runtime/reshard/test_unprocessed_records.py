"""Records that are unprocessed when a reshard begins, or that are written while it runs."""

import json
from collections.abc import Callable
from contextlib import suppress

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard.checks import check_reshard, find_journal
from headwater_spark.driver.reshard.copy_plan import TopicCopy
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.journal import Journal, Phase
from headwater_spark.driver.reshard.start import ReshardOptions, plan_from_cluster
from headwater_spark.driver.reshard.state_copy import target_problems
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster
from tests.runtime.reshard.resharded_application import (
    DOCUMENT,
    TIME,
    Counts,
    application,
    inputs,
    report_stopped,
)


@pytest.mark.parametrize("is_expanded", [False, True])
def test_an_unprocessed_record_of_a_key_that_moves_is_refused_or_written_again(*, is_expanded: bool) -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.write_input("orders", 30, processed=2)
    waiting = app.unprocessed("orders")
    after = inputs((5, 2, 2))
    with pytest.raises(ProblemsError) as raised:
        app.reshard(after)
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.UNPROCESSED_RECORDS}
    journal = find_journal(DOCUMENT, app.counts, app.cluster)
    assert journal is None
    options = ReshardOptions(partitions=after, rewritten=frozenset({"orders"}))
    if is_expanded:
        app.cluster.expand({"orders": 5, "payments": 5})
    for operations in range(0, 10_000, 40):
        app.cluster.kill_after(operations)
        with suppress(KilledError):
            journal = find_journal(DOCUMENT, app.counts, app.cluster)
            reshard = plan_from_cluster(DOCUMENT, app.counts, options, journal, app.cluster)
            if journal is None:
                assert check_reshard(reshard, app.cluster) == []
            ReshardExecution(
                reshard, app.cluster, {}, journal, report_no_progress, check_stopped=report_stopped
            ).run()
            break
    assert operations > 40
    assert app.counts["orders"] == 5
    assert app.unprocessed("orders") == waiting


def test_a_record_that_is_written_during_the_reshard_has_advice_that_completes_it() -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = inputs((5, 2, 2))
    app.cluster.kill_after(150)
    with pytest.raises(KilledError):
        app.reshard(after)
    app.cluster.kill_after(None)
    key = next(key for key in (b"key %d" % each for each in range(99)) if default_partition(key, 5) == 4)
    app.cluster.write([("orders", default_partition(key, 2), key, b"new", TIME, ())])
    waiting = app.unprocessed("orders")
    with pytest.raises(ProblemsError) as raised:
        app.reshard(after)
    [problem] = raised.value.problems
    assert "--rewrite-unprocessed orders" in problem.fix
    assert "start the application" not in problem.fix
    assert "Nothing was changed" not in problem.why
    options = ReshardOptions(rewritten=frozenset({"orders"}))
    journal = find_journal(DOCUMENT, app.counts, app.cluster)
    assert journal is not None
    reshard = plan_from_cluster(DOCUMENT, app.counts, options, journal, app.cluster)
    ReshardExecution(
        reshard, app.cluster, {}, journal, report_no_progress, check_stopped=report_stopped
    ).run()
    assert app.counts["orders"] == 5
    assert app.unprocessed("orders") == waiting


@attrs.frozen
class OneStore:
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
            reshard, self.cluster, {}, self.journal, report_no_progress, check_stopped=report_stopped
        )
        execution.run()

    def check_counts(self) -> None:
        """Check that the application cannot start until all entries are moved."""
        if set(self.counts.values()) == {4}:
            journal = self.journal
            assert journal is None or journal.phases == {self.changelog: Phase.DONE}


def one_store(*, is_rekeyed: bool) -> OneStore:
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
        cluster.write([(topic, partition, key, b"1", TIME, ()) for topic in written])
    for partition in range(2):
        cluster.offsets["orders", partition] = Committed(0)
        cluster.offsets[rewritten, partition] = Committed(cluster.topics[rewritten][partition][4][2])
    if is_rekeyed:
        cluster.expand({"orders": 4})
    return OneStore(document, cluster, rewritten)


@pytest.mark.parametrize("is_rekeyed", [True, False])
def test_counts_do_not_fit_until_the_entries_of_the_only_store_are_moved(*, is_rekeyed: bool) -> None:
    app = one_store(is_rekeyed=is_rekeyed)
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
    app = one_store(is_rekeyed=True)
    app.cluster.write([(app.rewritten, 1 - default_partition(b"key", 2), b"key", b"1", TIME, ())])
    with pytest.raises(ProblemsError, match="The unprocessed record at offset"):
        app.reshard()
    assert app.counts[app.rewritten] == 2


def test_unprocessed_records_are_not_copied_twice() -> None:
    app = application(inputs((2, 2, 2)), 1)
    [target] = [
        each
        for each in compile_document(DOCUMENT, app.counts).internal_topics
        if each.name.endswith("-repartition")
    ]
    # All records were processed, and Kafka Streams has deleted them: the topic begins at its end.
    app.cluster.bounds = lambda partitions: dict.fromkeys(partitions, (3, 3))  # type: ignore[method-assign]
    copies = [TopicCopy("app-old-repartition", target, 2)]
    [problem] = target_problems(copies, app.cluster)
    assert "has offsets for it already" in problem.summary
    for partition in range(2):
        del app.cluster.offsets[target.name, partition]
    assert list(target_problems(copies, app.cluster)) == []


def test_repartition_topics_without_offsets_are_written_again_and_skipped() -> None:
    """An application that was killed before its first commit reads them from the beginning."""
    app = application(inputs((2, 2, 2)), 1)
    topics = [topic for topic in app.counts if topic.endswith("-repartition")]
    assert topics
    for topic in topics:
        for partition in range(app.counts[topic]):
            del app.cluster.offsets[topic, partition]
    waiting = {topic: app.unprocessed(topic) for topic in topics}
    app.reshard(inputs((5, 3, 2)))
    assert {topic: app.unprocessed(topic) for topic in topics} == waiting
