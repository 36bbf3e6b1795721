"""Headwater's result for each recorded case is that of the real Kafka Streams 4.1.1."""

import json

import pytest

from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.model.compiled import TopicKind
from headwater.model.problems import errors
from tests.oracle.case_documents import document_of, document_text
from tests.oracle.comparison import compiled, insides, theirs
from tests.oracle.kafka_streams import Run
from tests.oracle.recorded import CASES, Case, cases_with, recorded_counts

_IDS_TRIED = 160


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_document_of_a_case_is_generated_from_its_text(case: Case) -> None:
    assert case.text("document.yaml") == document_text(document_of(case.folder))


@pytest.mark.parametrize("case", cases_with("describe.txt"), ids=lambda case: case.name)
def test_describe_is_the_same_byte_for_byte(case: Case) -> None:
    assert write_description(build_nodes(case.document())) == case.text("describe.txt")


@pytest.mark.parametrize("case", cases_with("subtopologies.json"), ids=lambda case: case.name)
def test_subtopologies_topics_configs_and_copartition_groups(case: Case) -> None:
    document = case.document()
    described = json.loads(case.text("subtopologies.json").replace("<app>-", f"{case.name}-"))
    every_topic = {topic: 1 for part in described["subtopologies"] for topic in part["source_topics"]}
    every_topic |= {source["topic"]: 1 for source in case.json("sources.json")["sources"]}
    ours = compiled(document, Run(case.name, every_topic))
    unmatched = {
        part.id for part in ours.subtopologies if part.source_patterns
    }  # recorded before any topic existed
    seen = insides(ours, build_nodes(document))
    seen["subtopologies"] = [part for part in seen["subtopologies"] if part["id"] not in unmatched]
    assert seen == theirs(described)


@pytest.mark.parametrize("case", cases_with("partition_counts.json"), ids=lambda case: case.name)
def test_counts_have_all_recorded_outcomes(case: Case) -> None:
    """Counts may depend on the application id, so the test tries many."""
    document = case.document()
    for run in case.json("partition_counts.json")["runs"]:
        expected = {json.dumps(outcome["counts"], sort_keys=True) for outcome in run["outcomes"]}
        tried = _IDS_TRIED if run["depends_on_application_id"] else 8
        found = set()
        for number in range(tried):
            application_id = f"oracle-{number}"
            ours = compiled(document, Run(application_id, run["sources"]))
            assert not errors(ours.problems)
            counts = {topic.name: topic.partitions for topic in ours.internal_topics}
            found.add(json.dumps(recorded_counts(counts, application_id), sort_keys=True))
        assert found == expected


@pytest.mark.parametrize("case", cases_with("partition_counts.json"), ids=lambda case: case.name)
def test_a_dependence_on_the_application_id_is_reported(case: Case) -> None:
    document = case.document()
    for run in case.json("partition_counts.json")["runs"]:
        ours = compiled(document, Run(case.name, run["sources"]))
        reported = {
            problem.topic for problem in ours.problems if problem.code == "PartitionsDependOnApplicationId"
        }
        varying = {
            topic
            for topic in run["outcomes"][0]["counts"]
            if len({outcome["counts"][topic] for outcome in run["outcomes"]}) > 1
            and not topic.endswith("-changelog")
        }
        assert {topic.replace("<app>", case.name) for topic in varying} <= reported
        assert bool(reported) == run["depends_on_application_id"]


@pytest.mark.parametrize("case", cases_with("internal_topics.json"), ids=lambda case: case.name)
def test_topics_found_on_the_broker(case: Case) -> None:
    document = case.document()
    outcomes = {
        json.dumps(run["sources"], sort_keys=True): [outcome["counts"] for outcome in run["outcomes"]]
        for run in case.json("partition_counts.json")["runs"]
    }
    for run in case.json("internal_topics.json")["runs"]:
        ours = compiled(document, Run("<app>", run["sources"]))
        created = {topic.name: topic for topic in ours.internal_topics}
        live = {topic["name"]: topic for topic in run["internal_topics"]}
        assert created.keys() == live.keys()
        assert {name: topic.kind.value for name, topic in created.items()} == {
            n: t["kind"] for n, t in live.items()
        }
        assert {name: dict(topic.config) for name, topic in created.items()} == {
            n: t["configs"] for n, t in live.items()
        }
        possible = outcomes[json.dumps(run["sources"], sort_keys=True)]
        assert {name: topic["partitions"] for name, topic in live.items()} in possible
        if len(possible) == 1:
            assert {name: topic.partitions for name, topic in created.items()} == possible[0]
            assert {str(part.id): part.tasks for part in ours.subtopologies if part.tasks} == {
                number: part["tasks"] for number, part in run["subtopologies"].items() if part["tasks"]
            }


def test_every_kind_of_internal_topic_is_recorded() -> None:
    kinds = {
        topic["kind"]
        for case in cases_with("internal_topics.json")
        for run in case.json("internal_topics.json")["runs"]
        for topic in run["internal_topics"]
    }
    assert kinds == {kind.value for kind in TopicKind}
