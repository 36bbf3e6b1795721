"""Invalid documents: all problems are reported, nothing is changed."""

from collections.abc import Mapping

import pytest
import yaml

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def counting(id_: str, source: str, store: str = "counts", config: Mapping[str, object] | None = None) -> str:
    topology = [{"stream": {"topic": source}}, {"groupByKey": None}, {"count": {"materialized": store}}]
    return yaml.safe_dump({"application": {"id": id_, "config": dict(config or {})}, "topology": topology})


def test_all_invalid_documents_are_reported_together(deployment: Deployment) -> None:
    deployment.declare()
    documents = {
        "too-many-replicas": counting(
            f"r{deployment.id}", deployment.source, config={"replication.factor": 5}
        ),
        "source-is-missing": counting(f"s{deployment.id}", f"no-{deployment.source}"),
        "name-is-too-long": counting(f"l{deployment.id}", deployment.source, store="n" * 240),
        "looks-like-another": counting(f"{deployment.id}-counts", deployment.source),
        "same-id": counting(deployment.id, deployment.source),
        "broken": "application: {id: broken\ntopology: [",
        "alias-bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "too-large": f"application: {{id: large}}\n# {'x' * 50_000_000}\n",
    }
    for name, text in documents.items():
        deployment.stack.document(name, text)
    outcome = deployment.refused(
        "MissingSourceTopic",
        "InvalidName",
        "ApplicationIdOverlap",
        "DuplicateApplication",
        "YamlSyntax",
        "DocumentTooLarge",
    )
    words = " ".join(outcome.text.split())
    assert "requires 5 replicas, and only 1 broker answers." in words, str(outcome)
    for name in ("broken", "alias-bomb", "too-large"):
        assert f"{name}.yaml" in words, str(outcome)
    for name in documents:
        deployment.stack.document(name, None)
    deployment.up()


def test_what_the_brokers_refuse_is_reported_before_anything_changes(deployment: Deployment) -> None:
    deployment.declare({"topic.vendor.tier": "cold"}, setup={"allowTopicConfigs": ["vendor.*"]})
    preview = deployment.stack.preview()
    assert "RefusedByBrokers" in preview.text, str(preview)
    assert "Unknown topic config name: vendor.tier" in " ".join(preview.text.split()), str(preview)
    deployment.refused("RefusedByBrokers")


def test_a_planning_timeout_is_reported(deployment: Deployment) -> None:
    deployment.declare(setup={"timeout": 1})
    deployment.refused("Timeout")
