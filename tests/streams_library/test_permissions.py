"""The planned ACLs are enough for an application with the library, and let it create no topic."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.compiler import compile_document
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.planner.acls import application_needs
from headwater.spec import load_text
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.acls.secured_cluster import SecuredCluster
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, SUPPLIER, jvm

pytestmark = [pytest.mark.broker, pytest.mark.oracle]
_USER = SaslUser("orders-app", "orders-secret")
_PRINCIPAL = f"User:{_USER.name}"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_CONFIG = {
    "default.client.supplier": SUPPLIER,
    "internal.topics.setup": "manual",
    "partition.autoscaling.enabled": "true",
}
_DOCUMENT = """
application:
  id: {id}
  config: {config}
acls: {{principals: ["User:orders-app"]}}
topology:
  - stream: {{topic: {id}-orders}}
  - groupBy: {{key: value, name: by-value}}
  - count: {{materialized: counts}}
  - toStream:
  - to: {{topic: {id}-totals}}
"""


def test_an_application_expands_its_topics_with_the_planned_acls(
    own_broker: Callable[..., Broker], kafka_distribution: KafkaDistribution, tmp_path: Path
) -> None:
    """Without Alter on a topic, the log has the command that grants it; then the expansion continues."""
    with own_broker(Settings(sasl_users=(_USER,), authorizer=True)) as broker, jvm(NEWEST, tmp_path) as java:
        cluster = SecuredCluster(broker)
        application = TestedApplication("shop", broker.bootstrap_servers)
        application.create(application.source, 2)
        application.create(application.sink, 2)
        java.initialize("shop", application.topology, application.configs())
        loaded = load_text(_DOCUMENT.format(id="shop", config=_CONFIG), "shop.yaml")
        assert not loaded.problems, loaded.problems
        needs = application_needs(compile_document(loaded.documents[0], {application.source: 2}))
        assert Operation.CREATE not in {need.permission.operation for need in needs}
        cluster.set_acls(_PRINCIPAL, [need.permission for need in needs])
        log = cluster.log_length
        configs = {
            **application.configs(),
            **_CONFIG,
            "bootstrap.servers": broker.address("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_LOGIN} username="{_USER.name}" password="{_USER.password}";',
        }
        java.start("shop", application.topology, configs)
        java.await_tasks("shop", 4)
        application.expand(application.source, 4)
        java.await_tasks("shop", 8)
        assert cluster.denials(log) == set()

        alter = Permission(ResourceKind.TOPIC, application.changelog, Operation.ALTER)
        assert alter in {need.permission for need in needs}
        cluster.set_acls(_PRINCIPAL, [need.permission for need in needs if need.permission != alter])
        application.expand(application.source, 6)
        hint = f"Grant the application's user Alter on the topic: {alter.command}"
        application.await_true(lambda: any(hint in line for line in java.log), "the log has the command")
        assert application.counts(application.changelog, application.repartition) == {
            application.changelog: 4,
            application.repartition: 6,
        }
        cluster.grant(hint, _PRINCIPAL, kafka_distribution)
        java.await_tasks("shop", 12)
