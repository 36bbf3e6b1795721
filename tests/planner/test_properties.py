"""Properties of every plan, after any change of the cluster between two runs."""

from random import Random

import attrs
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.problems import ProblemCode, errors
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.planner import ActionKind
from tests.planner.simulated_cluster import SimulatedCluster, application

IDS = ("billing", "orders", "search")
CONFIG_CHANGES = (
    {"cleanup_policy": "delete"},
    {"cleanup_policy": "compact"},
    {"retention_ms": "1000"},
    {"retention_bytes": "1000"},
    {"segment_bytes": "1000000"},
    {"min_insync_replicas": "2"},
)


CONFIGS = st.fixed_dictionaries(
    {"static.partitioner.class": st.just("tenants:Tenants")},
    optional={
        "internal.topics.setup": st.sampled_from(["automatic", "manual"]),
        "partition.autoscaling.enabled": st.just("true"),
    },
)
SETUPS = st.builds(
    Setup,
    if_incomplete=st.booleans(),
    adopt=st.booleans(),
    reinitialize=st.booleans(),
    allow_unsafe_expansion=st.booleans(),
)
LIFECYCLES = st.sampled_from([Lifecycle.ACTIVE] * 6 + [Lifecycle.RELEASED, Lifecycle.RETIRED])
FORMER_IDS = st.sampled_from([None, None, *IDS[:2]])
SINKS = st.none() | st.builds(Sink, st.just("shared-out"), st.none() | st.integers(1, 6))

Documents = tuple[CompiledApplication, ...]


@st.composite
def documents(draw: st.DrawFn, sources: dict[str, int]) -> Documents:
    """Up to three applications with any config and any `setup`. Nine of ten applications have a document.

    One of them may manage the sink, in each run another one.
    """
    manager = draw(st.sampled_from(IDS))
    return tuple(
        application(
            id_=id_,
            sources={f"{id_}-in": sources[id_], "shared-in": sources["shared"]},
            config=draw(CONFIGS),
            setup=draw(SETUPS),
            lifecycle=draw(LIFECYCLES),
            stateful=draw(st.booleans()),
            steps=draw(st.sampled_from([2, 2, 2, 0, 3])),
            sink=draw(SINKS) if id_ == manager else None,
            renamed_from=draw(FORMER_IDS) if id_ == IDS[2] else None,
            processors=draw(st.sampled_from([None] * 5 + [1, 2, 4])),
        )
        for id_ in IDS
        if draw(st.integers(0, 9))
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[SimulatedCluster, Documents]:
    """A cluster after some runs and some changes by other clients, and the documents of the next run."""
    cluster = SimulatedCluster()
    sources = {name: draw(st.integers(1, 4)) for name in (*IDS, "shared")}
    for _ in range(draw(st.integers(0, 2))):
        planned = cluster.plan(*draw(documents(sources)))
        if planned.is_applicable:
            cluster.apply(planned)
    for name in (
        draw(st.lists(st.sampled_from(sorted(cluster.topics)), unique=True)) if cluster.topics else ()
    ):
        draw(st.sampled_from(OTHER_CHANGES))(cluster, name, draw)
    for id_ in draw(st.lists(st.sampled_from(IDS), unique=True)):
        cluster.run_group(id_, draw(st.integers(0, 2)))
    if draw(st.booleans()):
        cluster.records.pop(draw(st.sampled_from(IDS)), None)
    if draw(st.booleans()):
        sources = {
            name: max(1, count + draw(st.sampled_from([0, 0, 2, -1]))) for name, count in sources.items()
        }
    return cluster, draw(documents(sources))


OTHER_CHANGES = (
    lambda cluster, name, _: cluster.topics.pop(name),
    lambda cluster, name, draw: cluster.recreate(name, is_empty=draw(st.booleans())),
    lambda cluster, name, _: cluster.change(name, partitions=cluster.topics[name].partitions + 1),
    lambda cluster, name, draw: cluster.configure(name, **draw(st.sampled_from(CONFIG_CHANGES))),
    lambda cluster, name, draw: cluster.configure(name, **draw(st.sampled_from(CONFIG_CHANGES))),
)


@given(histories())
def test_a_plan_converges_in_one_step(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    planned = cluster.plan(*applications)
    if planned.is_applicable:
        cluster.apply(planned)
        again = cluster.plan(*applications)
        assert not errors(again.problems)
        assert not again.has_changes


@given(histories())
def test_a_topic_has_one_action(history: tuple[SimulatedCluster, Documents]) -> None:
    """Pulumi registers a topic once: a second registration fails when other topics are already created."""
    cluster, applications = history
    planned = cluster.plan(*applications)
    if planned.is_applicable:
        names = [action.name for action in planned.actions]
        assert sorted(names) == sorted(set(names))


@given(histories())
def test_counts_never_shrink(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    for action in cluster.plan(*applications).actions:
        assert action.live is None or action.partitions >= action.live.partitions


@given(histories())
def test_only_topics_of_retired_applications_are_deleted(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    present = {compiled.application.id for compiled in applications}
    for part in cluster.plan(*applications).applications:
        if any(action.kind is ActionKind.DELETE for action in part.actions):
            assert cluster.records[part.application_id].retired
            assert part.application_id not in present
            assert not any(topic.is_sink for topic in cluster.records[part.application_id].topics.values())


@given(histories())
def test_existing_topics_are_never_created_again(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    for action in cluster.plan(*applications).actions:
        is_created = action.kind in (ActionKind.CREATE, ActionKind.RECREATE)
        assert is_created is (action.name not in cluster.topics and action.kind is not ActionKind.RELEASE)


@given(histories())
def test_an_applicable_plan_reaches_the_counts_that_the_topology_requires(
    history: tuple[SimulatedCluster, Documents],
) -> None:
    cluster, applications = history
    planned = cluster.plan(*applications)
    if planned.is_applicable:
        cluster.apply(planned)
        for compiled in applications:
            if compiled.application.lifecycle is Lifecycle.ACTIVE:
                counts = {cluster.topics[topic.name].partitions for topic in compiled.internal_topics}
                assert counts <= {topic.partitions for topic in compiled.internal_topics}


@given(histories())
def test_configs_of_other_clients_are_kept(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    for action in cluster.plan(*applications).actions:
        if action.live is not None and "min.insync.replicas" in action.live.config:
            assert action.config["min.insync.replicas"] == action.live.config["min.insync.replicas"]


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_documents_does_not_matter(
    history: tuple[SimulatedCluster, Documents], random: Random
) -> None:
    cluster, applications = history
    shuffled = list(applications)
    random.shuffle(shuffled)
    assert cluster.plan(*shuffled) == cluster.plan(*applications)


@given(histories())
def test_one_error_makes_the_plan_inapplicable(history: tuple[SimulatedCluster, Documents]) -> None:
    cluster, applications = history
    late = tuple(
        attrs.evolve(
            compiled,
            application=attrs.evolve(
                compiled.application, setup=attrs.evolve(compiled.application.setup, timeout_ms=1)
            ),
        )
        for compiled in applications
    )
    planned = cluster.plan(*late, elapsed_ms=2)
    is_late = any(problem.code is ProblemCode.TIMEOUT for problem in planned.problems)
    assert is_late is any(c.application.lifecycle is Lifecycle.ACTIVE for c in applications)
    assert planned.is_applicable is not bool(errors(planned.problems))


@given(histories())
def test_an_applied_plan_leaves_a_changelog_partition_for_each_processor(
    history: tuple[SimulatedCluster, Documents],
) -> None:
    """Of every active application with a number of processors: no other count is accepted or made."""
    cluster, applications = history
    planned = cluster.plan(*applications)
    if not planned.is_applicable:
        return
    cluster.apply(planned)
    for compiled in applications:
        number = compiled.application.processors
        if number is not None and compiled.application.lifecycle is Lifecycle.ACTIVE:
            changelogs = [
                topic.name for topic in compiled.internal_topics if topic.kind is TopicKind.CHANGELOG
            ]
            assert {cluster.topics[name].partitions for name in changelogs} <= {number}
