"""Recorded runs of Kafka Streams 4.1.1: imported text and cluster give the same topics."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.compiler import compile_document
from headwater.compiler.described import complete_from_cluster
from headwater.describe import read_description
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.problems import Location, errors
from headwater.model.topology import Application, DescribedTopology, TopologyDocument
from tests.oracle.recorded import of_recorded_version

CASES = Path(__file__).parent.parent / "oracle" / "cases"
AT = Location("describe.txt")


def runs() -> list[Any]:
    return [
        pytest.param(path.parent, run, id=f"{path.parent.name}-{'-'.join(map(str, run['sources'].values()))}")
        for path in sorted(CASES.glob("*/internal_topics.json"))
        for run in json.loads(path.read_text())["runs"]
        if run["result"] == "RUNNING"
    ]


def live(run: dict[str, Any]) -> ClusterSnapshot:
    topics = [LiveTopic(name, "id", count, 1) for name, count in run["sources"].items()]
    topics += [
        LiveTopic(topic["name"].replace("<app>", "app"), "id", topic["partitions"], 1, topic["configs"])
        for topic in run["internal_topics"]
    ]
    names = [topic.name for topic in topics]
    groups = {"app": LiveGroup("app", "Stable", 1)}
    return ClusterSnapshot("c", 1, dict(zip(names, topics, strict=True)), groups, frozenset(names))


@pytest.mark.parametrize(("case", "run"), runs())
def test_an_imported_application_has_the_topics_of_the_running_one(case: Path, run: dict[str, Any]) -> None:
    nodes, problems = read_description((case / "describe.txt").read_text())
    assert problems == ()
    config = json.loads((case / "case.json").read_text())["config"]
    application = Application("app", AT, config={key: str(value) for key, value in config.items()})
    snapshot = live(run)
    described = complete_from_cluster(DescribedTopology(nodes, AT), application, snapshot)
    document = of_recorded_version(TopologyDocument(application, described=described))
    compiled = compile_document(document, snapshot.partitions)
    assert {topic.name: (topic.partitions, dict(topic.config)) for topic in compiled.internal_topics} == {
        topic["name"].replace("<app>", "app"): (topic["partitions"], topic["configs"])
        for topic in run["internal_topics"]
    }
    assert {
        str(part.id): part.tasks for part in compiled.subtopologies if part.sources and not part.is_global
    } == {id_: part["tasks"] for id_, part in run["subtopologies"].items()}
    assert errors(compiled.problems) == ()
