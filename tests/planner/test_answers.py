"""Answers of a plan about what an application needs and Headwater does not create."""

import attrs
import pytest

from headwater.compiler import compile_documents
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import Protocol
from headwater.planner import PlanPolicy, plan
from headwater.spec import load_text
from tests.planner.simulated_cluster import SimulatedCluster, application, changelog, repartition

STREAMS = attrs.evolve(
    application(), application=attrs.evolve(application().application, protocol=Protocol.STREAMS)
)
PINNED = attrs.evolve(repartition("orders-pinned-repartition", 4, 1), pinned=True)


@pytest.mark.parametrize(
    ("topics", "live", "reported"),
    [
        ("", (), ["out"]),
        ("topics: {out: {partitions: 3}}", (), []),
        ("", ("out",), []),
    ],
    ids=["missing", "managed", "exists"],
)
def test_a_missing_sink_that_no_document_manages_is_a_hint(
    topics: str, live: tuple[str, ...], reported: list[str]
) -> None:
    steps = "topology: [{stream: in}, {repartition: {name: r}}, {to: out}]"
    text = f"application: {{id: app}}\n{topics}\n{steps}\n"
    cluster = SimulatedCluster()
    for topic in ("in", *live):
        cluster.create(topic, 2, {})
    compiled = compile_documents(load_text(text, "app.yaml").documents, cluster.snapshot.partitions)
    problems = plan(compiled, cluster.snapshot, {}, PlanPolicy()).problems
    hints = [problem for problem in problems if problem.code is ProblemCode.MISSING_SINK_TOPIC]
    assert [problem.topic for problem in hints] == reported
    assert all(problem.severity is Severity.INFO for problem in hints)


@pytest.mark.parametrize(
    ("protocols", "features", "refused"),
    [
        ({"classic", "consumer"}, None, True),
        ({"classic", "streams"}, {"metadata.version": 27}, True),
        ({"classic", "streams"}, {"streams.version": 1}, False),
        ({"classic", "streams"}, None, False),
        (None, None, False),
    ],
    ids=["not configured", "feature not enabled", "enabled", "feature not known", "not known"],
)
def test_the_streams_protocol_needs_brokers_that_have_it(
    protocols: set[str] | None, features: dict[str, int] | None, *, refused: bool
) -> None:
    cluster = SimulatedCluster()
    cluster.group_protocols = None if protocols is None else frozenset(protocols)
    cluster.features = features
    found = {problem.code for problem in cluster.plan(STREAMS).problems}
    assert (ProblemCode.GROUP_PROTOCOL_MISSING in found) is refused
    assert ProblemCode.GROUP_PROTOCOL_MISSING not in {
        problem.code for problem in cluster.plan(application()).problems
    }


@pytest.mark.parametrize("count", [2, 6], ids=["lowered", "raised"])
def test_a_changed_explicit_count_has_its_own_code(count: int) -> None:
    """The changelog of the sub-topology that reads the topic follows the explicit count."""
    follower = changelog("orders-counts-changelog", 4, subtopology=1)
    cluster = SimulatedCluster.set_up(application(topics=[PINNED, follower]))
    changed = [attrs.evolve(topic, partitions=count) for topic in (PINNED, follower)]
    problems = cluster.plan(application(topics=changed)).problems
    assert [problem.code for problem in problems] == [ProblemCode.EXPLICIT_COUNT_CHANGED] * 2
    assert all("eclare 4 again" in problem.fix for problem in problems)
    cluster.change("orders-pinned-repartition", partitions=8)
    (first, *_) = cluster.plan(application(topics=[PINNED, follower])).problems
    assert first.code == ProblemCode.OVER_PARTITIONED
