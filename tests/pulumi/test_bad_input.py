"""Documents that cannot be carried out: everything is told, nothing is changed."""

from collections.abc import Mapping

import pytest
import yaml

from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def counting(id_: str, source: str, store: str = "counts", config: Mapping[str, object] | None = None) -> str:
    topology = [{"stream": {"topic": source}}, {"groupByKey": None}, {"count": {"materialized": store}}]
    return yaml.safe_dump({"application": {"id": id_, "config": dict(config or {})}, "topology": topology})


def test_documents_that_cannot_be_carried_out_are_told_together(world: World) -> None:
    world.declare()
    documents = {
        "too-many-replicas": counting(f"r{world.id}", world.source, config={"replication.factor": 5}),
        "source-is-missing": counting(f"s{world.id}", f"no-{world.source}"),
        "name-is-too-long": counting(f"l{world.id}", world.source, store="n" * 240),
        "looks-like-another": counting(f"{world.id}-counts", world.source),
        "same-id": counting(world.id, world.source),
        "broken": "application: {id: broken\ntopology: [",
        "alias-bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "too-large": f"application: {{id: large}}\n# {'x' * 50_000_000}\n",
    }
    for name, text in documents.items():
        world.stack.document(name, text)
    outcome = world.refused(
        "ReplicationFactor",
        "MissingSourceTopic",
        "InvalidName",
        "ApplicationIdOverlap",
        "DuplicateApplication",
        "YamlSyntax",
        "DocumentTooLarge",
    )
    words = " ".join(outcome.text.split())
    assert "is to have 5 replicas on 1 broker." in words, str(outcome)
    for name in ("broken", "alias-bomb", "too-large"):
        assert f"{name}.yaml" in words, str(outcome)
    for name in documents:
        world.stack.document(name, None)
    world.up()


def test_planning_that_takes_too_long_is_told(world: World) -> None:
    world.declare(setup={"timeout": 1})
    world.refused("Timeout")
