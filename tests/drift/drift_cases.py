"""Drift of example documents for reports, and of simulated clusters in the short forms that tests compare."""

from functools import cache
from pathlib import Path

import attrs

from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location, Severity
from headwater.planner.drift import Drift, Finding, FindingKind, find_drift
from headwater.spec import load_documents
from tests.planner.simulated_cluster import COMPACTED, SimulatedCluster, application, changelog, repartition

EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"
HOSTILE = "<script>alert('x')</script>`|@team##[error]\N{RIGHT-TO-LEFT OVERRIDE}"
SOURCES = {
    "customers": 6,
    "open-orders": 4,
    "orders": 6,
    "payments": 6,
    "stock": 3,
}


def examples(sources: dict[str, int]) -> tuple[CompiledApplication, ...]:
    """Return some of the example applications. Their locations have file names without folders."""
    compiled = compile_documents(load_documents([EXAMPLES]).documents, sources)
    ids = ("fulfilment", "order-enrichment", "revenue-by-category")
    return tuple(_with_file_names(each) for each in compiled if each.application.id in ids)


def _with_file_names(compiled: CompiledApplication) -> CompiledApplication:
    def without_folder(at: Location) -> Location:
        return attrs.evolve(at, file=Path(at.file).name)

    return attrs.evolve(
        compiled,
        application=attrs.evolve(compiled.application, at=without_folder(compiled.application.at)),
        internal_topics=tuple(
            attrs.evolve(topic, at=without_folder(topic.at) if topic.at else None)
            for topic in compiled.internal_topics
        ),
    )


@cache
def clean() -> Drift:
    compiled = examples(SOURCES)
    cluster = SimulatedCluster.set_up(*compiled)
    return find_drift(compiled, cluster.snapshot, cluster.records)


@cache
def changed() -> Drift:
    """Each kind of drift: lost, re-created, too few and too many partitions, other configs, orphaned.

    A topic of another client is only named like an internal topic.
    """
    cluster = SimulatedCluster.set_up(*examples(SOURCES))
    for name, partitions in SOURCES.items():
        if name not in cluster.topics:
            cluster.create(name, partitions)
    cluster.change("fulfilment-orders-with-stock-changelog", partitions=9)
    cluster.recreate("fulfilment-reservations-changelog", is_empty=True)
    registration = "fulfilment-order-stock-subscription-registration-topic"
    cluster.configure(registration, retention_ms="3600000", flush_ms="1000")
    cluster.create("fulfilment-old-view-changelog", 4, COMPACTED)
    cluster.create("fulfilment-cdc-changelog", 1)
    cluster.change("payments", partitions=12)
    compiled = examples({**SOURCES, "payments": 12})
    return find_drift(compiled, cluster.snapshot, cluster.records)


@cache
def incomplete() -> Drift:
    """A setup record without a document: the plan has an error that is not drift."""
    compiled = examples(SOURCES)
    cluster = SimulatedCluster.set_up(*compiled)
    del cluster.topics[compiled[0].internal_topics[0].name]
    return find_drift(compiled[:2], cluster.snapshot, cluster.records)


@cache
def hostile() -> Drift:
    """Names that no cluster allows. Each format must escape them."""
    topics = [repartition(f"{HOSTILE}-by-repartition", 4), changelog(f"{HOSTILE}-counts-changelog", 4)]
    compiled = application(id_=HOSTILE, sources={"]]>&\x1b[31m\x00": 4}, topics=topics)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.change(topics[0].name, partitions=9)
    cluster.change(topics[1].name, config={"cleanup.policy": "compact", HOSTILE: f"{HOSTILE}\n\x07"})
    cluster.create(f"{HOSTILE}-left-changelog", 1, COMPACTED)
    return find_drift([compiled], cluster.snapshot, cluster.records)


def large(topics: int, *, drifted: bool = True) -> Drift:
    """Applications with 20 topics each. `drifted`: each topic has a finding of its own."""
    compiled = [application(id_=f"shop-{number:03}", steps=19) for number in range(topics // 20)]
    cluster = SimulatedCluster.set_up(*compiled)
    for name in list(cluster.topics) if drifted else ():
        cluster.change(name, partitions=5)
    return find_drift(compiled, cluster.snapshot, cluster.records)


def without_style(page: str) -> str:
    """Return a page without its style sheet, which all pages include: golden files need not repeat it."""
    before, _, rest = page.partition("<style>")
    return f"{before}<style></style>{rest.partition('</style>')[2]}"


REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"


def drift_of(cluster: SimulatedCluster, *compiled: CompiledApplication, recorded: bool = True) -> Drift:
    return find_drift(compiled, cluster.snapshot, cluster.records if recorded else None)


def kinds_of(drift: Drift) -> list[tuple[FindingKind, str | None, Severity]]:
    return [(finding.kind, finding.topic, finding.severity) for finding in drift.findings]


def only_finding(drift: Drift) -> Finding:
    assert not drift.problems
    (finding,) = drift.findings
    return finding
