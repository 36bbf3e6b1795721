"""The document that the library exports from code has exactly the topics that Kafka Streams creates."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.versions import SUPPORTED
from tests.oracle.comparison import compiled, insides, theirs
from tests.oracle.exported_documents import compare_export, loaded, without_extractors
from tests.oracle.kafka_streams import RECORDED, KafkaStreams, Refusal, Run
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.recorded import Case, cases_with
from tests.oracle.situations import random_situation, stored_situations
from tests.yaml_text import load_yaml

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(0)]
_HERE = Path(__file__).parent
_QUICK = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "60"))
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "1000"))
_ALL = [str(version) for version in SUPPORTED]
_STORED = {
    name: situation
    for folder in ("regressions", "published")
    for name, situation in stored_situations(_HERE / folder)
}


def _assert_exact(kafka_streams: KafkaStreams, seeds: range) -> None:
    topics = 0
    for seed in seeds:
        situation = random_situation(Choices(random.Random(seed).randrange))  # noqa: S311 - equal in each run
        compared = compare_export(kafka_streams, situation)
        assert not compared.differences, f"seed {seed}: {compared.differences[0]}"
        topics += compared.topics
    assert topics > len(seeds)


@pytest.mark.parametrize("version", [_ALL[0], _ALL[-1]])
def test_exports_of_random_topologies(kafka_streams_of: Callable[[str], KafkaStreams], version: str) -> None:
    _assert_exact(kafka_streams_of(version), range(_QUICK))


@pytest.mark.soak
@pytest.mark.parametrize("version", _ALL)
def test_exports_of_many_random_topologies(
    kafka_streams_of: Callable[[str], KafkaStreams], version: str
) -> None:
    _assert_exact(kafka_streams_of(version), range(10_000, 10_000 + _LONG))


@pytest.mark.parametrize("version", [_ALL[0], _ALL[-1]])
def test_exports_of_stored_situations(kafka_streams_of: Callable[[str], KafkaStreams], version: str) -> None:
    for name, situation in _STORED.items():
        compared = compare_export(kafka_streams_of(version), situation)
        assert not compared.differences, f"{name}: {compared.differences[0]}"


@pytest.mark.parametrize("case", cases_with("subtopologies.json"), ids=lambda case: case.name)
def test_exports_of_recorded_cases(kafka_streams_of: Callable[[str], KafkaStreams], case: Case) -> None:
    exported = kafka_streams_of(RECORDED).exported(load_yaml(case.text("document.yaml")))
    assert not isinstance(exported, Refusal), exported
    document = loaded(exported)
    assert not isinstance(document, str), document
    nodes = build_nodes(document)
    described = json.loads(case.text("subtopologies.json").replace("<app>-", f"{case.name}-"))
    every_topic = {topic: 1 for part in described["subtopologies"] for topic in part["source_topics"]}
    every_topic |= {source["topic"]: 1 for source in case.json("sources.json")["sources"]}
    ours = compiled(document, Run(document.application.id, every_topic))
    unmatched = {part.id for part in ours.subtopologies if part.source_patterns}
    seen = insides(ours, nodes)
    seen["subtopologies"] = [part for part in seen["subtopologies"] if part["id"] not in unmatched]
    assert seen == theirs(described)
    assert without_extractors(write_description(nodes)) == without_extractors(case.text("describe.txt"))
