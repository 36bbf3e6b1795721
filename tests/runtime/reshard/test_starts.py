"""Applications that start while a reshard is prepared, runs or is interrupted."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.compiler.cluster_profiles import with_profile
from headwater.compiler.streams_config import LIBRARY_SUPPLIER
from headwater.model.cluster_profiles import PROFILES
from headwater.model.problems import ProblemCode, ProblemsError, errors
from headwater.model.topology import Protocol, Setup, TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard import problems
from headwater_spark.driver.reshard.checks import autoscaling_problems, find_journal, forgotten_offsets
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.journal import Phase, read_journal
from headwater_spark.driver.reshard.problems import AUTOSCALING
from headwater_spark.driver.reshard.start import ReshardOptions, plan_from_cluster
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster
from tests.runtime.reshard.resharded_application import (
    DOCUMENT,
    TIME,
    Counts,
    application,
    expected_entries,
    inputs,
    operations_until_begun,
    report_stopped,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


_AUTOSCALING = {AUTOSCALING: "true"}


def with_config(config: "Mapping[str, str]") -> TopologyDocument:
    return attrs.evolve(DOCUMENT, application=attrs.evolve(DOCUMENT.application, config=config))


def test_an_application_that_starts_before_a_topic_is_expanded_loses_nothing() -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.kill_after(operations_until_begun(app))
    with pytest.raises(KilledError):
        app.reshard(inputs((5, 2, 2)))
    app.cluster.kill_after(None)
    assert find_journal(DOCUMENT, app.counts, app.cluster) is not None
    app.write_entries(10)  # Kafka Streams starts: the counts fit
    after = inputs((4, 3, 2))  # another request is possible, too
    expected = expected_entries(app, after)
    app.reshard(after)
    assert app.live() == expected


@pytest.mark.parametrize("kill", [None, 1, 9, 200])
def test_an_application_that_starts_after_the_checks_loses_nothing(kill: int | None) -> None:
    """It writes until the first topic is expanded; then the ends are committed again."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = inputs((5, 2, 2))
    expected: list[Mapping[tuple[str, bytes], tuple[int, bytes, int, object]]] = []
    operations = 0

    def start_once() -> None:
        nonlocal operations
        if not expected and find_journal(DOCUMENT, app.counts, app.cluster) is not None:
            app.write_entries(10)
            expected.append(expected_entries(app, after))
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
            cluster.write([(each, partition, key, b"1", TIME, ()) for each in (topic, changelogs[topic])])
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
    ReshardExecution(reshard, cluster, {}, None, report_no_progress, check_stopped=report_stopped).run()
    assert set(counts().values()) == {4}
    assert set(fitting) <= {"DONE"}


@pytest.mark.parametrize("expanded", [(), ("orders",)])
def test_an_application_that_expands_its_topics_needs_source_topics_with_the_old_counts(
    expanded: tuple[str, ...],
) -> None:
    """With the new counts, its library or an agent would expand the other topics, and let it start.

    Agents and `pulumi up` expand no topics of an application with state, unless that is declared to be safe.
    """
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.expand(dict.fromkeys(expanded, 5))
    after = inputs((5, 2, 2))
    reshard, _, _ = app.plan(after)
    library, static = {"default.client.supplier": LIBRARY_SUPPLIER}, {"static.partitioner.class": "shops:By"}
    unsafe = attrs.evolve(DOCUMENT.application, setup=Setup(allow_unsafe_expansion=True), config=_AUTOSCALING)
    for refused in (
        with_config({**library, **_AUTOSCALING}),
        with_config({**static, **_AUTOSCALING}),
        attrs.evolve(DOCUMENT, application=unsafe),
    ):
        found = [problem.code for problem in autoscaling_problems(reshard, refused)]
        assert found == [ProblemCode.RESHARD_REFUSED] * len(expanded)
    for config in (library, static, _AUTOSCALING, {**library, AUTOSCALING: "false"}):
        assert list(autoscaling_problems(reshard, with_config(config))) == []


def test_an_application_that_runs_when_its_topics_are_expanded_is_waited_for() -> None:
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    after = inputs((5, 2, 2))
    reshard, _, _ = app.plan(after)
    expected = expected_entries(app, after)

    def is_running() -> None:
        raise ProblemsError([problems.group_active("app", "Stable", 0, has_begun=True)])

    with pytest.raises(ProblemsError):
        ReshardExecution(reshard, app.cluster, {}, None, report_no_progress, check_stopped=is_running).run()
    assert app.live().keys() == expected.keys()
    assert app.counts["orders"] == 2
    app.reshard({})
    assert app.live() == expected
    assert app.counts["orders"] == 5


@pytest.mark.parametrize("has_begun", [False, True])
def test_settings_that_the_cluster_does_not_accept_of_new_topics_refuse_no_reshard(
    *, has_begun: bool
) -> None:
    """Otherwise a reshard that was interrupted could not be completed."""
    app, after = application(inputs((2, 2, 2)), 1), inputs((5, 2, 2))
    app.write_entries(20)
    if has_begun:
        app.cluster.kill_after(operations_until_begun(app))
        with pytest.raises(KilledError):
            app.reshard(after)
        app.cluster.kill_after(None)
    config = {"topic.min.insync.replicas": "2"}
    [recognized] = with_profile([with_config(config)], PROFILES["redpanda"])
    found = compile_document(recognized, app.counts).problems
    assert [problem.code for problem in errors(found)] == [ProblemCode.NOT_ON_CLUSTER]
    journal = find_journal(recognized, app.counts, app.cluster)
    assert (journal is not None) == has_begun
    options = ReshardOptions(partitions={} if has_begun else after)
    reshard = plan_from_cluster(recognized, app.counts, options, journal, app.cluster)
    assert reshard.expansions["orders"] == 5


def test_forgotten_offsets_are_reported_although_no_topic_has_to_be_expanded() -> None:
    """A reshard whose last topic was expanded, and whose journal brokers have forgotten."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    assert app.plan({})[0].transfers == ()
    assert list(forgotten_offsets(DOCUMENT, app.counts, app.cluster)) == []
    app.cluster.offsets.clear()
    [problem] = forgotten_offsets(DOCUMENT, app.counts, app.cluster)
    assert "app has state, but no committed offsets" in problem.summary
    assert "classic" not in problem.fix


def test_offsets_that_are_set_again_make_a_classic_group() -> None:
    """Brokers of Kafka 4.1 then refuse a streams group (`tests/streams_groups/test_kept_offsets`)."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.offsets.clear()
    streams = attrs.evolve(DOCUMENT.application, protocol=Protocol.STREAMS)
    [problem] = forgotten_offsets(attrs.evolve(DOCUMENT, application=streams), app.counts, app.cluster)
    assert "With brokers of Kafka 4.1, start it with `group.protocol: classic`" in problem.fix


def test_state_without_offsets_is_refused() -> None:
    """Brokers forget the offsets of an application that was stopped for a week."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    app.cluster.offsets.clear()
    with pytest.raises(ProblemsError, match="app has state, but no committed offsets"):
        app.reshard(inputs((5, 2, 2)))


def test_counts_fit_only_when_subscriptions_are_replaced() -> None:
    """The topic of the subscriptions keeps its count: it is not the last one, although it is the smallest."""
    app = application(inputs((2, 2, 2)), 1)
    app.write_entries(20)
    topic = "app-owner-subscription-store-changelog"
    after = inputs((2, 2, 4))
    targets = {each.name: each.partitions for each in compile_document(DOCUMENT, after).internal_topics}
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
