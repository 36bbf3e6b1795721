"""The example documents are set up and expanded: plans of real topologies converge, downstream first."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import attrs
import pytest

from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.topology import TopologyDocument
from headwater.planner import Plan
from headwater.spec import load_documents
from tests.planner.simulated_cluster import SimulatedCluster

EXAMPLES = Path(__file__).parents[2] / "topology_schemas/examples"
FILES = sorted(set(EXAMPLES.rglob("*.yaml")) - {EXAMPLES / "features/observed.yaml"})  # cannot be expanded


def expandable(document: TopologyDocument) -> TopologyDocument:
    application = document.application
    config = {**application.config, "partition.autoscaling.enabled": "true"}
    setup = attrs.evolve(application.setup, allow_unsafe_expansion=True)
    return attrs.evolve(document, application=attrs.evolve(application, config=config, setup=setup))


def compiled(
    documents: Sequence[TopologyDocument], cluster: SimulatedCluster
) -> tuple[CompiledApplication, ...]:
    return compile_documents(documents, cluster.snapshot.partitions)


def cluster_with_sources(documents: Sequence[TopologyDocument], partitions: int) -> SimulatedCluster:
    cluster = SimulatedCluster()
    sinks = {sink.topic for document in documents for sink in document.sinks}
    missing = {name for application in compiled(documents, cluster) for name in application.missing_sources}
    for name in sorted(missing - sinks):
        cluster.create(name, partitions)
    return cluster


def expand_sources(cluster: SimulatedCluster, partitions: int) -> None:
    recorded = {name for record in cluster.records.values() for name in record.topics}
    for name in cluster.topics.keys() - recorded:
        cluster.change(name, partitions=partitions)


def assert_downstream_first(plan: Plan, applications: Sequence[CompiledApplication]) -> None:
    """Assert that upstream topics are expanded after the topics that their readers write.

    The exception is the cycle of a foreign-key join: the response topic is expanded first, although its
    reader writes the registration topic.
    """
    waves = {action.name: action.wave for action in plan.actions if action.added_partitions}
    for application in applications:
        for part in application.subtopologies:
            for upstream, downstream in product(part.sources, (*part.sinks, *part.changelog_topics)):
                if upstream in waves and downstream in waves:
                    is_response = "response" in upstream.lower() and "registration" in downstream.lower()
                    assert (waves[downstream] < waves[upstream]) is not is_response, (upstream, downstream)


@pytest.mark.parametrize("files", [*([file] for file in FILES), FILES], ids=lambda files: files[0].stem)
def test_examples_are_set_up_and_expanded(files: Sequence[Path]) -> None:
    documents = [expandable(document) for document in load_documents(files).documents]
    cluster = cluster_with_sources(documents, 4)
    cluster.up(*compiled(documents, cluster))
    assert not cluster.plan(*compiled(documents, cluster)).has_changes

    expand_sources(cluster, 6)
    applications = compiled(documents, cluster)
    plan = cluster.up(*applications)
    assert_downstream_first(plan, applications)
    assert not cluster.plan(*compiled(documents, cluster)).has_changes
    for application in applications:
        for group in application.copartition_groups:
            assert len({cluster.topics[name].partitions for name in group}) == 1
