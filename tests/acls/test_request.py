"""Which configs and ACLs are requested with few permissions, and what Headwater needs for patterns."""

import json
from pathlib import Path

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.describe import write_description
from headwater.kafka import SnapshotRequest, snapshot_request
from headwater.model.acls import Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.records import SetupRecord
from headwater.planner.acls import Purpose, headwater_needs
from headwater.spec import load_documents, load_text

_EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"

_DOCUMENTS = """
application: {id: shop}
acls: {principals: ["User:shop", "User:deputy"]}
topics: {totals: {partitions: 4}}
topology:
  - stream: {topic: orders}
  - to: {topic: totals}
---
application: {id: audit}
topology: [{stream: {topics: [totals, shop-counts-changelog, payments]}}]
"""


def request(records: dict[str, SetupRecord] | None = None) -> SnapshotRequest:
    loaded = load_text(_DOCUMENTS, "shop.yaml")
    assert not loaded.problems
    return snapshot_request(loaded.documents, records or {})


def test_configs_are_requested_only_for_managed_topics() -> None:
    """A sink or changelog topic of one application can be the source of another."""
    assert request().sources == {"orders", "payments"}
    assert {"totals", "shop-counts-changelog"} <= request().names


@pytest.mark.parametrize("file", sorted(_EXAMPLES.rglob("*.yaml")), ids=lambda file: file.stem)
def test_a_described_topology_has_the_same_source_topics(file: Path) -> None:
    """Its text has the internal topics as sources, without the application's prefix."""
    for document in load_documents([file]).documents:
        if document.steps:
            text = write_description(build_nodes(document))
            content = {"application": {"id": document.application.id}, "describe": {"text": text}}
            loaded = load_text(json.dumps(content), "described.json")
            calls = attrs.evolve(document, sinks=())
            assert snapshot_request(loaded.documents, {}).names == snapshot_request([calls], {}).names


def test_acls_are_requested_for_declared_and_recorded_principals() -> None:
    assert request().acl_principals == {"User:shop", "User:deputy"}
    held = Acl("User:former", "*", Permission(ResourceKind.GROUP, "audit", Operation.READ))
    records = {"audit": SetupRecord("audit", {}, 1, acls=frozenset({held}))}
    assert request(records).acl_principals == {"User:shop", "User:deputy", "User:former"}


_DOCUMENT = """
application: {{id: shop}}
topology: [{{stream: {{pattern: "{pattern}"}}}}, {{to: out}}]
"""


@pytest.mark.parametrize(
    ("pattern", "described"),
    [
        ("orders-(eu|us)", {("orders-eu", Pattern.LITERAL), ("orders-us", Pattern.LITERAL)}),
        ("orders-.*", {("orders-", Pattern.PREFIXED)}),
        (".*-orders", {("*", Pattern.LITERAL)}),
    ],
)
def test_a_pattern_without_a_fixed_prefix_needs_describe_on_all_topics(
    pattern: str, described: set[tuple[str, Pattern]]
) -> None:
    compiled = compile_document(load_text(_DOCUMENT.format(pattern=pattern), "shop.yaml").documents[0], {})
    found = {
        (need.permission.name, need.permission.pattern)
        for need in headwater_needs(Purpose.PLAN, [compiled])
        if need.permission.kind is ResourceKind.TOPIC and need.permission.operation is Operation.DESCRIBE
    }
    assert described <= found
    assert ("*" in {name for name, _ in found}) == ("*" in {name for name, _ in described})
