"""Random topologies, imported with no more details than the import asks for: derived details are right."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.nodes import ChangelogKind, NodeTopology
from headwater.model.problems import ProblemCode, Severity, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import parse_document
from tests.oracle.comparison import compiled, essence, has_unseen_groups, parsed
from tests.oracle.described_documents import store_details
from tests.oracle.kafka_streams import PROTOCOLS, Run
from tests.oracle.random_topologies.generator import Generator
from tests.oracle.random_topologies.stores import Choices

_HIDDEN = ("kind", "retainDuplicates")
_SEEDS = [
    *(pytest.param(seed, id=f"seed {seed}") for seed in range(50)),
    *(pytest.param(seed, id=f"seed {seed}", marks=pytest.mark.slow) for seed in range(50, 150)),
]


@pytest.mark.parametrize("seed", _SEEDS)
def test_derived_details_compile_to_the_same_topics(seed: int) -> None:
    generator = Generator(Choices(random.Random(seed).randrange))  # noqa: S311 - equal in each run
    document = parsed(generator.document(1 + seed % 30))
    if not isinstance(document, TopologyDocument):
        return  # a config that this version does not have
    nodes = build_nodes(document)
    if errors(nodes.problems) or has_unseen_groups(document, nodes):
        return
    text = write_description(nodes)
    details = {
        name: {key: value for key, value in detail.items() if key not in _HIDDEN or name in asked}
        for asked in [_asked(document, nodes, text)]
        for name, detail in store_details(nodes).items()
    }
    imported = _imported(document, nodes, text, details)
    if any(problem.severity is Severity.WARNING for problem in build_nodes(imported).problems):
        return  # the import names what it cannot know
    for run in _runs(generator.partitions()):
        direct = compiled(document, run)
        if not errors(direct.problems):
            assert essence(compiled(imported, run)) == essence(direct), f"{run}\n{text}"


def _runs(cluster: Mapping[str, int]) -> Sequence[Run]:
    return [Run("app", cluster, protocol) for protocol in PROTOCOLS]


def _asked(document: TopologyDocument, nodes: NodeTopology, text: str) -> set[str | None]:
    """Return the stores whose kind is asked for or, as for versioned tables, is not the default."""
    found = build_nodes(_imported(document, nodes, text, {})).problems
    return {
        problem.node
        for problem in found
        if problem.code is ProblemCode.MISSING_DETAIL and problem.found == "no kind"
    } | {store.name for store in nodes.stores if store.kind is ChangelogKind.VERSIONED}


def _imported(
    document: TopologyDocument, nodes: NodeTopology, text: str, stores: Mapping[str, Any]
) -> TopologyDocument:
    counts = {topic.name: topic.partitions for topic in nodes.repartition_topics if topic.partitions}
    content = {
        "application": {"id": document.application.id},
        "describe": {"text": text, "stores": dict(stores), "repartitions": counts},
    }
    documents = parse_document(content)
    assert not documents.problems, documents.problems
    return attrs.evolve(documents.documents[0], application=document.application)
