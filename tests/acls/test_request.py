"""What is asked of a cluster for the sake of rights, and what is not."""

from infra.model.acls import Acl, Operation, ResourceKind, Right
from infra.model.record import SetupRecord
from infra.observe import SnapshotRequest, snapshot_request
from infra.spec import load_text

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


def test_settings_are_left_alone_where_headwater_keeps_nothing() -> None:
    """A sink of one application, or its changelog, may be the source of another."""
    assert request().sources == {"orders", "payments"}
    assert {"totals", "shop-counts-changelog"} <= request().names


def test_acls_are_asked_for_of_whom_documents_name_or_the_stack_granted() -> None:
    assert request().acl_principals == {"User:shop", "User:deputy"}
    held = Acl("User:former", "*", Right(ResourceKind.GROUP, "audit", Operation.READ))
    records = {"audit": SetupRecord("audit", {}, 1, acls=frozenset({held}))}
    assert request(records).acl_principals == {"User:shop", "User:deputy", "User:former"}
