"""What holds for every plan, whatever happened to the cluster between two runs."""

from random import Random

import attrs
from hypothesis import given
from hypothesis import strategies as st

from infra.model.compiled import CompiledApplication
from infra.model.problems import ProblemCode, errors
from infra.model.topology import Lifecycle, Setup, Sink
from infra.planner import ActionKind
from tests.planner.world import World, application

IDS = ("billing", "orders", "search")
CONFIG_CHANGES = (
    {"cleanup_policy": "delete"},
    {"cleanup_policy": "compact"},
    {"retention_ms": "1000"},
    {"retention_bytes": "1000"},
    {"segment_bytes": "1000000"},
    {"min_insync_replicas": "2"},
)


@st.composite
def compiled_applications(draw: st.DrawFn) -> tuple[CompiledApplication, ...]:
    """Documents of up to three applications, each in any mode, with any switches."""
    config = st.fixed_dictionaries(
        {},
        optional={
            "internal.topics.setup": st.sampled_from(["automatic", "manual"]),
            "partition.autoscaling.enabled": st.sampled_from(["true", "false"]),
            "static.partitioner.class": st.just("tenants:Tenants"),
        },
    )
    setups = st.builds(
        Setup,
        if_incomplete=st.booleans(),
        adopt=st.booleans(),
        reinitialize=st.booleans(),
        allow_unsafe_expansion=st.booleans(),
    )
    return tuple(
        application(
            id=id_,
            sources={f"{id_}-in": draw(st.integers(1, 6)), "shared-in": draw(st.integers(1, 3))},
            config=draw(config),
            setup=draw(setups),
            lifecycle=draw(st.sampled_from([Lifecycle.ACTIVE] * 4 + [Lifecycle.RELEASED, Lifecycle.RETIRED])),
            stateful=draw(st.booleans()),
            stages=draw(st.integers(0, 3)),
            sink=Sink(f"{id_}-out", draw(st.none() | st.integers(1, 6))) if draw(st.booleans()) else None,
        )
        for id_ in draw(st.lists(st.sampled_from(IDS), unique=True))
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """What runs have left behind, then what people have done to it."""
    world = World()
    for _ in range(draw(st.integers(0, 2))):
        planned = world.plan(*draw(compiled_applications()))
        if planned.is_applicable:
            world.apply(planned)
    for name in draw(st.lists(st.sampled_from(sorted(world.topics)), unique=True)) if world.topics else ():
        match draw(st.sampled_from(["delete", "recreate", "expand", "configure"])):
            case "delete":
                del world.topics[name]
            case "recreate":
                world.recreate(name, is_empty=draw(st.booleans()))
            case "expand":
                world.change(name, partitions=world.topics[name].partitions + draw(st.integers(1, 2)))
            case _:
                world.configure(name, **draw(st.sampled_from(CONFIG_CHANGES)))
    for id_ in draw(st.lists(st.sampled_from(IDS), unique=True)):
        world.run_group(id_, draw(st.integers(0, 2)))
    if draw(st.booleans()):
        world.records.pop(draw(st.sampled_from(IDS)), None)
    return world


@given(worlds(), compiled_applications())
def test_a_plan_converges_in_one_step(world: World, applications: tuple[CompiledApplication, ...]) -> None:
    planned = world.plan(*applications)
    if planned.is_applicable:
        world.apply(planned)
        again = world.plan(*applications)
        assert not errors(again.problems)
        assert not again.has_changes


@given(worlds(), compiled_applications())
def test_counts_never_shrink(world: World, applications: tuple[CompiledApplication, ...]) -> None:
    for action in world.plan(*applications).actions:
        assert action.live is None or action.partitions >= action.live.partitions


@given(worlds(), compiled_applications())
def test_nothing_is_deleted_but_what_was_retired_before(
    world: World, applications: tuple[CompiledApplication, ...]
) -> None:
    present = {compiled.application.id for compiled in applications}
    for part in world.plan(*applications).applications:
        if any(action.kind is ActionKind.DELETE for action in part.actions):
            assert world.records[part.application_id].retired
            assert part.application_id not in present
            assert not any(topic.is_sink for topic in world.records[part.application_id].topics.values())


@given(worlds(), compiled_applications())
def test_what_exists_is_never_created_again(
    world: World, applications: tuple[CompiledApplication, ...]
) -> None:
    for action in world.plan(*applications).actions:
        is_made = action.kind in (ActionKind.CREATE, ActionKind.RECREATE)
        assert is_made is (action.name not in world.topics and action.kind is not ActionKind.RELEASE)


@given(worlds(), compiled_applications())
def test_an_applicable_plan_reaches_the_counts_that_the_topology_wants(
    world: World, applications: tuple[CompiledApplication, ...]
) -> None:
    planned = world.plan(*applications)
    if planned.is_applicable:
        world.apply(planned)
        for compiled in applications:
            if compiled.application.lifecycle is Lifecycle.ACTIVE:
                counts = {world.topics[topic.name].partitions for topic in compiled.internal_topics}
                assert counts <= {topic.partitions for topic in compiled.internal_topics}


@given(worlds(), compiled_applications())
def test_settings_of_others_survive(world: World, applications: tuple[CompiledApplication, ...]) -> None:
    for action in world.plan(*applications).actions:
        if action.live is not None and "min.insync.replicas" in action.live.config:
            assert action.config["min.insync.replicas"] == action.live.config["min.insync.replicas"]


@given(worlds(), compiled_applications(), st.randoms(use_true_random=False))
def test_the_order_of_documents_does_not_matter(
    world: World, applications: tuple[CompiledApplication, ...], random: Random
) -> None:
    shuffled = list(applications)
    random.shuffle(shuffled)
    assert world.plan(*shuffled) == world.plan(*applications)


@given(worlds(), compiled_applications())
def test_one_error_stops_everything(world: World, applications: tuple[CompiledApplication, ...]) -> None:
    late = tuple(
        attrs.evolve(
            compiled,
            application=attrs.evolve(
                compiled.application, setup=attrs.evolve(compiled.application.setup, timeout_ms=1)
            ),
        )
        for compiled in applications
    )
    planned = world.plan(*late, elapsed_ms=2)
    is_late = any(problem.code is ProblemCode.TIMEOUT for problem in planned.problems)
    assert is_late is any(c.application.lifecycle is Lifecycle.ACTIVE for c in applications)
    assert planned.is_applicable is not bool(errors(planned.problems))
