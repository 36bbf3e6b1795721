"""Documents and their golden topologies, compared with the real Kafka Streams library.

The files in `cases` have the names of the modules in `headwater/compiler/dsl` whose calls they make.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.describe import write_description
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SourceNode, StateStore
from headwater.model.problems import Problem, errors
from headwater.model.topology import TopologyDocument
from tests.compiler.dsl.documents import CASES, built, texts, typed, whole
from tests.oracle.comparison import compiled, insides, theirs
from tests.oracle.kafka_streams import KafkaStreams, Run


def rendered(nodes: NodeTopology) -> str:
    return "".join(f"{line}\n" for line in _lines(nodes))


def _lines(nodes: NodeTopology) -> Iterator[str]:
    for node in nodes.nodes:
        yield _node(node) + (" (global)" if node.name in nodes.global_nodes else "")
    for store in nodes.stores:
        yield _store(store)
    for topic in nodes.repartition_topics:
        kind = "foreign key" if topic.is_foreign_key else "repartition"
        yield f"{kind} {topic.name}" + (f" = {topic.partitions}" if topic.partitions is not None else "")
    for group in nodes.copartition_groups:
        yield "copartitioned " + ", ".join(sorted(group))
    if nodes.generated_names:
        yield "generated " + ", ".join(sorted(nodes.generated_names))
    for problem in nodes.problems:
        yield from _problem(problem)


def _node(node: Node) -> str:
    if isinstance(node, SourceNode):
        return f"{node.name} reads {node.pattern if node.pattern is not None else ', '.join(node.topics)}"
    line = f"{node.name} < {', '.join(node.parents)}"
    if isinstance(node, ProcessorNode):
        return line + (f" [{', '.join(node.stores)}]" if node.stores else "")
    return f"{line} writes {node.topic if node.topic is not None else node.extractor}"


def _store(store: StateStore) -> str:
    parts = [f"store {store.name}: {store.kind.value}"]
    if store.base_ms is not None:
        parts.append(f"{store.base_ms} ms")
    if store.changelog_topic is not None:
        parts.append(f"changelog {store.changelog_topic}")
    elif not store.logged:
        parts.append("not logged")
    parts += [f"{key}={value}" for key, value in store.overrides.items()]
    parts += ["connected " + " ".join(sorted(processors)) for processors in store.connections]
    return ", ".join(parts)


def _problem(problem: Problem) -> Iterator[str]:
    where = f" (line {problem.location.line})" if problem.location is not None else ""
    yield f"{problem.severity.value.upper()} {problem.code}{where}: {problem.summary}"
    for label, text in (
        ("topic", problem.topic),
        ("node", problem.node),
        ("expected", problem.expected),
        ("found", problem.found),
        ("why", problem.why),
        ("fix", problem.fix),
    ):
        if text:
            yield f"    {label}: {text}"


FAMILIES = sorted(file.stem for file in CASES.glob("*.yaml"))
INVALID = {"invalid", "unsupported_calls"}
KNOWN_TO_KAFKA_STREAMS = [
    pytest.param(text, id=f"{family}: {title}")
    for family in FAMILIES
    if family != "unsupported_calls"
    for title, text in texts(family)
]


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_compile_to_the_golden_topologies(family: str, golden: Callable[[Path, str], None]) -> None:
    golden(CASES / f"{family}.txt", "\n".join(_sections(family)))


@pytest.mark.parametrize("family", sorted(INVALID))
def test_invalid_documents_have_an_error(family: str) -> None:
    for title, text in texts(family):
        assert errors(built(text).problems), title


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - INVALID - {"optimize"}))
def test_valid_documents_have_no_error(family: str) -> None:
    for title, text in texts(family):
        assert not errors(built(text).problems), title


@pytest.mark.parametrize("family", FAMILIES)
def test_every_problem_has_a_consequence_and_a_fix(family: str) -> None:
    for title, text in texts(family):
        for problem in built(text).problems:
            assert problem.why.endswith("."), (title, problem)
            assert problem.fix.endswith("."), (title, problem)
            assert problem.summary.endswith("."), (title, problem)
            assert problem.application == "app"


@pytest.mark.oracle
@pytest.mark.parametrize("text", KNOWN_TO_KAFKA_STREAMS)
def test_kafka_streams_builds_or_rejects_the_same(text: str, kafka_streams: KafkaStreams) -> None:
    document, nodes = typed(text), built(text)
    assert isinstance(document, TopologyDocument)
    data = whole(text)
    topics = dict.fromkeys(_topics(data["topology"]), 3) | {"src-1": 3}

    answer = kafka_streams.ask(data, (), topics)

    if answer.refusal is not None:
        assert any(f"throws {answer.refusal.name} " in problem.why for problem in errors(nodes.problems))
    else:
        assert not errors(nodes.problems)
        assert write_description(nodes) == answer.describe
        assert answer.insides is not None
        assert insides(compiled(document, Run("app", topics)), nodes) == theirs(answer.insides)


def _topics(calls: list[dict[str, dict[str, object] | None]]) -> Iterator[str]:
    """Yield the topics that sources may read, and possibly other topics."""
    for call in calls:
        for options in call.values():
            for key in ("topic", "topics"):
                found = (options or {}).get(key, [])
                yield from [found] if isinstance(found, str) else map(str, found)  # type: ignore[call-overload]


def _sections(family: str) -> Iterator[str]:
    for title, text in texts(family):
        yield f"== {title}\n{rendered(built(text))}"
