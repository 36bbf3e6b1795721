"""Compare the document that the library exports from code with the topology that Kafka Streams builds."""

import re
from collections.abc import Iterator, Sequence

import attrs

from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.problems import errors
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from tests.oracle.comparison import compiled, run_differences
from tests.oracle.kafka_streams import Answer, KafkaStreams, Refusal, Run
from tests.oracle.situations import Situation

_EXTRACTOR = re.compile(r"\(extractor class: .*\)$", re.MULTILINE)


@attrs.frozen
class Compared:
    """What was compared: topics with count and config, and the differences."""

    topics: int = 0
    differences: tuple[str, ...] = ()


def compare_export(kafka_streams: KafkaStreams, situation: Situation) -> Compared:
    """Compare the exported document of a situation in all its runs; a topology that is refused has none."""
    exported = kafka_streams.exported(situation.document)
    if isinstance(exported, Refusal):
        return Compared()
    runs = situation.runs(kafka_streams.protocols)
    answer = kafka_streams.ask(situation.document, runs, situation.clusters[0])
    found = tuple(f"{each}\n{exported}" for each in export_differences(exported, answer, runs))
    return Compared(sum(len(counts.counts) for counts in answer.runs), found)


def export_differences(exported: str, answer: Answer, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the differences of description, sub-topologies, topics, configs, counts and tasks."""
    document = loaded(exported)
    if isinstance(document, str):
        yield document
        return
    nodes = build_nodes(document)
    text = write_description(nodes)
    if without_extractors(text) != without_extractors(answer.describe or ""):
        yield f"describe:\n--- exported\n{text}\n--- Kafka Streams\n{answer.describe}"
    yield from run_differences(nodes, answer, [(run, compiled(document, run)) for run in runs])


def loaded(exported: str) -> TopologyDocument | str:
    """Return the document, or the problems of reading it."""
    documents = load_text(exported, "exported.yaml")
    if errors(documents.problems) or not documents.documents:
        return "; ".join(problem.summary for problem in documents.problems)
    return documents.documents[0]


def without_extractors(description: str) -> str:
    """Return the text without what lambdas print: it has the address of an object."""
    return _EXTRACTOR.sub("(extractor class: …)", description)
