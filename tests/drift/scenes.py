"""Drifts to render: the examples of the repository on a cluster that somebody meddled with."""

from pathlib import Path

import attrs

from infra.compiler import compile_documents
from infra.model.compiled import CompiledApplication
from infra.model.problems import Location
from infra.planner.drift import Drift, find_drift
from infra.spec import load_documents
from tests.planner.world import World, application, changelog, repartition

EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"
HOSTILE = "<script>alert('x')</script>`|@team"
SOURCES = {
    "customers": 6,
    "open-orders": 4,
    "orders": 6,
    "payments": 6,
    "stock": 3,
}


def examples(sources: dict[str, int]) -> tuple[CompiledApplication, ...]:
    """Compile the examples, whose files are named without the folders that they lie in."""
    compiled = compile_documents(load_documents([EXAMPLES]).documents, sources)
    wanted = ("fulfilment", "order-enrichment", "revenue-by-category")
    return tuple(_placed(each) for each in compiled if each.application.id in wanted)


def _placed(compiled: CompiledApplication) -> CompiledApplication:
    def place(at: Location) -> Location:
        return attrs.evolve(at, file=Path(at.file).name)

    return attrs.evolve(
        compiled,
        application=attrs.evolve(compiled.application, at=place(compiled.application.at)),
        internal_topics=tuple(
            attrs.evolve(topic, at=place(topic.at) if topic.at else None)
            for topic in compiled.internal_topics
        ),
    )


def clean() -> Drift:
    compiled = examples(SOURCES)
    world = World.set_up(*compiled)
    return find_drift(compiled, world.snapshot, world.records)


def meddled() -> Drift:
    """One of everything: lost, re-created, too few, too many, other settings, left over."""
    world = World.set_up(*examples(SOURCES))
    for name, partitions in SOURCES.items():
        if name not in world.topics:
            world.create(name, partitions)
    world.change("fulfilment-orders-with-stock-changelog", partitions=9)
    world.recreate("fulfilment-reservations-changelog", is_empty=True)
    registration = "fulfilment-order-stock-subscription-registration-topic"
    world.configure(registration, retention_ms="3600000", flush_ms="1000")
    world.create("fulfilment-old-view-changelog", 4)
    world.change("payments", partitions=12)
    compiled = examples({**SOURCES, "payments": 12})
    return find_drift(compiled, world.snapshot, world.records)


def incomplete() -> Drift:
    """A record without a document: the plan has an error that is no drift."""
    compiled = examples(SOURCES)
    world = World.set_up(*compiled)
    del world.topics[compiled[0].internal_topics[0].name]
    return find_drift(compiled[:2], world.snapshot, world.records)


def hostile() -> Drift:
    """Names that no cluster allows and every format must survive."""
    topics = [repartition(f"{HOSTILE}-by-repartition", 4), changelog(f"{HOSTILE}-counts-changelog", 4)]
    compiled = application(id_=HOSTILE, sources={"]]>&\x1b[31m\x00": 4}, topics=topics)
    world = World.set_up(compiled)
    world.change(topics[0].name, partitions=9)
    world.change(topics[1].name, config={"cleanup.policy": "compact", HOSTILE: f"{HOSTILE}\n\x07"})
    world.create(f"{HOSTILE}-left-changelog", 1)
    return find_drift([compiled], world.snapshot, world.records)


def large(topics: int, *, drifted: bool = True) -> Drift:
    """Applications of 20 topics each; `drifted`: every topic differs, in a way that is told one by one."""
    compiled = [application(id_=f"shop-{number:03}", stages=19) for number in range(topics // 20)]
    world = World.set_up(*compiled)
    for name in list(world.topics) if drifted else ():
        world.change(name, partitions=5)
    return find_drift(compiled, world.snapshot, world.records)
