"""Random topologies, imported as `headwater import` does it: what a document assumes is announced."""

import random
from collections.abc import Iterator, Mapping
from typing import Literal

import attrs
import pytest

from headwater.cli.import_details import differences_from_cluster, with_cluster_details, with_unknown_details
from headwater.cli.imported_documents import DescribedApplication
from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.cluster import ClusterEvidence, ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.nodes import NodeTopology, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.topology import Protocol, TopologyDocument, UnknownDetails
from headwater.spec import load_text
from tests.oracle.comparison import compiled, essence, has_unseen_groups, parsed
from tests.oracle.described_documents import store_details
from tests.oracle.kafka_streams import PROTOCOLS, Run
from tests.oracle.random_topologies.generator import Generator
from tests.oracle.random_topologies.stores import Choices

_SEEDS = [
    *(pytest.param(seed, id=f"seed {seed}") for seed in range(1000, 1020)),
    *(pytest.param(seed, id=f"seed {seed}", marks=pytest.mark.slow) for seed in range(1020, 1060)),
]
_MANY = 3000


@attrs.frozen
class _Application:
    document: TopologyDocument
    nodes: NodeTopology
    text: str
    partitions: Mapping[str, int]


def _application(seed: int) -> _Application | None:
    """Return a random application, None if Kafka Streams would refuse it."""
    generator = Generator(Choices(random.Random(seed).randrange))  # noqa: S311 - equal in each run
    document = parsed(generator.document(1 + seed % 30))
    if not isinstance(document, TopologyDocument):
        return None
    nodes = build_nodes(document)
    if errors(nodes.problems) or has_unseen_groups(document, nodes):
        return None
    return _Application(document, nodes, write_description(nodes), generator.partitions())


def _asked(problems: tuple[Problem, ...], nodes: NodeTopology) -> dict[str, dict[str, object]]:
    """Return answers to the errors of an import: the kind of a store, or only its retention."""
    details = store_details(nodes)
    answers: dict[str, dict[str, object]] = {}
    for problem in problems:
        if problem.code is ProblemCode.MISSING_DETAIL and problem.severity is Severity.ERROR:
            assert problem.node is not None
            names = {"no kind": ("kind", "retention", "retainDuplicates"), "no retention": ("retention",)}
            given = {key: details[problem.node].get(key) for key in names[str(problem.found)]}
            answers[problem.node] = {key: value for key, value in given.items() if value is not None}
    return answers


def _loaded(imported: DescribedApplication, original: _Application) -> TopologyDocument:
    document = _document(imported)
    protocol = original.document.application.protocol
    return attrs.evolve(document, application=attrs.evolve(document.application, protocol=protocol))


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("with_config", [True, False])
def test_each_assumption_without_a_cluster_is_unknown(seed: int, *, with_config: bool) -> None:
    original = _application(seed)
    if original is None:
        return
    config = original.document.application.config if with_config else {}
    imported = DescribedApplication(
        application_id=original.document.application.id, text=original.text, config=config
    )
    imported = with_unknown_details(imported, _loaded(imported, original), None, assume_defaults=False)
    unknown = imported.unknown
    answers = _asked(build_nodes(_loaded(imported, original)).problems, original.nodes)
    document = _loaded(attrs.evolve(imported, stores=answers), original)
    warned = any(
        problem.severity is Severity.WARNING and "o-partition" in problem.summary
        for problem in build_nodes(document).problems
    )
    for protocol in PROTOCOLS:
        run = Run(original.document.application.id, original.partitions, protocol)
        direct, found = compiled(original.document, run), compiled(document, run)
        if errors(direct.problems):
            continue
        if "config" in unknown.application and essence(direct) != essence(found):
            continue
        may_differ = warned or bool(unknown.created_by) or _has_unknown_count(original.nodes, unknown)
        for topic, what in _differences(direct, found):
            is_announced = may_differ if what == "partitions" else _is_announced(topic, what, unknown)
            assert is_announced, f"{run}\n{topic.name}: {what}\n{original.text}"


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_imports_of_many_random_topologies() -> None:
    for seed in range(2000, 2000 + _MANY):
        for with_config in (True, False):
            test_each_assumption_without_a_cluster_is_unknown(seed, with_config=with_config)
        for protocol in PROTOCOLS:
            test_an_import_with_a_cluster_equals_its_topics(seed, protocol)


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_import_with_a_cluster_equals_its_topics(
    seed: int, protocol: Literal["classic", "streams"]
) -> None:
    original = _application(seed)
    if original is None:
        return
    id_ = original.document.application.id
    run = Run(id_, original.partitions, protocol)
    direct = compiled(original.document, run)
    if errors(direct.problems) or not direct.internal_topics:
        return
    snapshot = attrs.evolve(live_cluster(direct, original.partitions), evidence=ClusterEvidence())
    plain = DescribedApplication(
        application_id=id_, text=original.text, config=original.document.application.config
    )
    imported = with_cluster_details(plain, _document(plain), snapshot)
    imported = with_unknown_details(imported, _document(imported), snapshot, assume_defaults=False)
    document = _document(imported)
    found = compiled(document, run)

    reported = list(differences_from_cluster([found], [document], snapshot))
    assert (essence(found) == essence(direct)) == (reported == []), reported
    if not imported.unknown.created_by:
        assert reported == [], f"{run}\n{original.text}"
    assert set(imported.unknown.application) <= {"kafkaStreams"}
    assert not imported.unknown.repartitions


def live_cluster(application: CompiledApplication, sources: Mapping[str, int]) -> ClusterSnapshot:
    """Return a cluster on which the application runs."""
    topics = {name: LiveTopic(name, name, count, 1) for name, count in sources.items()}
    for topic in application.internal_topics:
        assert topic.partitions is not None
        topics[topic.name] = LiveTopic(topic.name, topic.name, topic.partitions, 1, topic.config)
    is_streams = application.application.protocol is Protocol.STREAMS
    id_ = application.application.id
    group = LiveGroup(id_, "Stable", 1, is_streams=is_streams)
    return ClusterSnapshot("c", 1, topics, groups={id_: group}, described=frozenset(topics))


def _document(imported: DescribedApplication) -> TopologyDocument:
    loaded = load_text(imported.document(), "app.yaml")
    assert not errors(loaded.problems), loaded.problems
    return loaded.documents[0]


def _has_unknown_count(nodes: NodeTopology, unknown: UnknownDetails) -> bool:
    return any(
        topic.partitions is not None and topic.name in unknown.repartitions
        for topic in nodes.repartition_topics
    )


def _differences(
    direct: CompiledApplication, found: CompiledApplication
) -> Iterator[tuple[InternalTopic, str]]:
    ours = {topic.name: topic for topic in found.internal_topics}
    theirs = {topic.name: topic for topic in direct.internal_topics}
    for name, topic in sorted({**ours, **theirs}.items()):
        if name not in ours or name not in theirs:
            yield topic, "exists"
            continue
        if ours[name].partitions != theirs[name].partitions:
            yield topic, "partitions"
        if dict(ours[name].config) != dict(theirs[name].config):
            yield topic, "config"


def _is_announced(topic: InternalTopic, what: str, unknown: UnknownDetails) -> bool:
    """Return whether the existence or the config of a changelog is listed as unknown."""
    details = unknown.stores.get(str(topic.node), ()) if topic.kind is TopicKind.CHANGELOG else ()
    return "logging" in details if what == "exists" else bool({"overrides", "kind"} & set(details))
