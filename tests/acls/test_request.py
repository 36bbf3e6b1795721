"""Snapshot requests with few permissions: which configs and ACLs are requested."""

from headwater.kafka import SnapshotRequest, snapshot_request
from headwater.model.acls import Acl, Operation, Permission, ResourceKind
from headwater.model.records import SetupRecord
from headwater.spec import load_text

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


def test_acls_are_requested_for_declared_and_recorded_principals() -> None:
    assert request().acl_principals == {"User:shop", "User:deputy"}
    held = Acl("User:former", "*", Permission(ResourceKind.GROUP, "audit", Operation.READ))
    records = {"audit": SetupRecord("audit", {}, 1, acls=frozenset({held}))}
    assert request(records).acl_principals == {"User:shop", "User:deputy", "User:former"}
