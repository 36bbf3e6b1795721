"""Each row of the table of differences between versions: the smallest topology that shows it really does."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from headwater.compiler import build_nodes
from headwater.compiler.version_differences import DIFFERENCES, Difference
from headwater.model.versions import SUPPORTED
from headwater.spec import parse_document
from tests.oracle.kafka_streams import KafkaStreams
from tests.oracle.situations import Situation
from tests.yaml_text import load_yaml

_TOPOLOGIES = Path(__file__).parent / "differences"
_DOCS = Path(__file__).parents[2] / "docs" / "versions.md"


@pytest.fixture(scope="module")
def oracles(kafka_streams_of: Callable[[str], KafkaStreams]) -> dict[str, KafkaStreams]:
    return {str(version): kafka_streams_of(str(version)) for version in SUPPORTED}


@pytest.mark.oracle
@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.name)
def test_smallest_topology_differs_between_neighbors(
    oracles: dict[str, KafkaStreams], difference: Difference
) -> None:
    without, having = (str(version) for version in _neighbors(difference))
    situation = _situation(difference, (without, having))
    old, new = (
        oracles[version].ask(situation.document, situation.runs(), situation.clusters[0])
        for version in (without, having)
    )
    assert old != new
    assert situation.differences(oracles[without]) == []
    assert situation.differences(oracles[having]) == []


def _situation(difference: Difference, versions: Iterable[str]) -> Situation:
    """Return the topology on a cluster with its source topics."""
    document = load_yaml((_TOPOLOGIES / f"{difference.name}.yaml").read_text(encoding="utf-8"))
    document["application"].pop("protocol", None)  # a situation runs both protocols
    loaded = [
        read
        for version in versions
        for read in parse_document(
            {**document, "application": {**document["application"], "kafkaStreams": version}}
        ).documents
    ]
    topics = {topic for node in build_nodes(loaded[0]).nodes for topic in getattr(node, "topics", ())}
    return Situation(document, (dict.fromkeys(topics, 2),))


def _neighbors(difference: Difference) -> tuple[object, object]:
    """Return the last version before the change, and the first with it."""
    first = next(index for index, version in enumerate(SUPPORTED) if difference.is_in(version))
    return SUPPORTED[first - 1], SUPPORTED[first]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.name)
def test_page_of_versions_has_the_row_and_the_topology(difference: Difference) -> None:
    page = _DOCS.read_text(encoding="utf-8")
    topology = (_TOPOLOGIES / f"{difference.name}.yaml").read_text(encoding="utf-8")
    assert f"```yaml\n{topology}```" in page
    assert f"| {difference.since_text.replace(' and ', ', ')} |" in page
    assert difference.source in page


def test_no_topology_is_left_over() -> None:
    assert {file.stem for file in _TOPOLOGIES.glob("*.yaml")} == {each.name for each in DIFFERENCES}
