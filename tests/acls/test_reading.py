"""Reading ACLs from real brokers, with and without an authorizer."""

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.acl_bindings import acl_binding, acl_of
from headwater.model.acls import CLUSTER_NAME, Acl, LiveAcls, Operation, Pattern, Permission, ResourceKind
from headwater.toolchain.broker.local import LocalBroker
from tests.acls.secured_cluster import SecuredCluster

PERMISSIONS = [
    Permission(ResourceKind.TOPIC, "reading-orders", Operation.READ),
    Permission(ResourceKind.TOPIC, "reading-", Operation.ALTER_CONFIGS, Pattern.PREFIXED),
    Permission(ResourceKind.TRANSACTIONAL_ID, "reading-", Operation.WRITE, Pattern.PREFIXED),
    Permission(ResourceKind.GROUP, "*", Operation.DESCRIBE),
    Permission(ResourceKind.CLUSTER, CLUSTER_NAME, Operation.ALTER),
]


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("kind", ResourceKind)
def test_acls_are_converted_to_bindings_and_back(kind: ResourceKind, operation: Operation) -> None:
    acl = Acl("User:CN=orders,OU=shop", "10.1.2.3", Permission(kind, "name", operation, Pattern.PREFIXED))
    assert acl_of(acl_binding(acl)) == acl


def test_deny_and_all_bindings_are_ignored() -> None:
    where = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL)
    who = ("User:orders", "*", AclOperation.READ)
    assert acl_of(AclBinding(*where, *who, AclPermissionType.ALLOW)) is not None
    assert acl_of(AclBinding(*where, *who, AclPermissionType.DENY)) is None
    assert acl_of(AclBinding(*where, "User:orders", "*", AclOperation.ALL, AclPermissionType.ALLOW)) is None


@pytest.mark.broker
@pytest.mark.every_broker
def test_the_acls_of_one_or_more_principals_are_read_in_one_request(secured_cluster: SecuredCluster) -> None:
    for principal in ("User:first", "User:second"):
        secured_cluster.set_acls(principal, PERMISSIONS)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(secured_cluster.broker.bootstrap_servers,)))

    def read(*principals: str) -> frozenset[Acl]:
        before = reader.requests
        live = reader.read(SnapshotRequest(acl_principals=frozenset(principals))).acls
        plain = reader.requests
        assert live is not None
        assert reader.read(SnapshotRequest()).acls is None
        # One request for the ACLs, one for the authorized operations of the cluster.
        assert plain - before == reader.requests - plain + 2
        return live.allowed

    first, second = (
        {Acl(f"User:{name}", "*", permission) for permission in PERMISSIONS} for name in ("first", "second")
    )
    assert read("User:first") == first
    assert read("User:first", "User:second") >= first | second


@pytest.mark.broker
def test_without_an_authorizer_there_are_no_acls(kafka: LocalBroker) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))
    snapshot = reader.read(SnapshotRequest(acl_principals=frozenset({"User:first"})))
    assert snapshot.acls == LiveAcls(has_authorizer=False)
