"""Imports texts that Kafka Streams prints."""

from infra.compiler import build_nodes, compile_document
from infra.compiler.described import complete
from infra.describe import read_description, write_description
from infra.model.compiled import CompiledApplication
from infra.model.problems import Location, Problem, ProblemCode
from infra.model.topology import Application, DescribedTopology, TopologyDocument
from tests.compiler.applications import document

AT = Location("app.txt")


def imported(text: str, **details: object) -> DescribedTopology:
    """Return the description that Kafka Streams prints for the document `text`, read back."""
    nodes, problems = read_description(write_description(build_nodes(document(text))))
    assert problems == ()
    return DescribedTopology(nodes, AT, **details)  # type: ignore[arg-type]


def missing_details(described: DescribedTopology) -> tuple[Problem, ...]:
    """Return the problems of missing details."""
    return tuple(p for p in complete(described).problems if p.code is ProblemCode.MISSING_DETAIL)


def compile_described(
    described: DescribedTopology, partitions: dict[str, int], config: dict[str, str] | None = None
) -> CompiledApplication:
    application = Application("app", AT, config=config or {})
    return compile_document(TopologyDocument(application, described=described), partitions)
