"""Real Kafka Streams runs with the planned permissions, and fails without any one of them."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import yaml

from headwater.compiler import compile_document
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.planner.acls import application_needs
from headwater.spec import load_text
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.acls.streams_process import Run, StreamsProcess
from tests.broker_version import enables_streams_groups, has_streams_groups

pytestmark = [pytest.mark.broker, pytest.mark.oracle]

ID = "orders-app"
PRINCIPAL = f"User:{APPLICATION.name}"
GUARANTEES = ("at_least_once", "exactly_once_v2")
PURGED = f"{ID}-by-customer-repartition"
RESTORED = f"{ID}-totals-changelog"
TOPICS = {"orders": 2, "regions": 1, "totals": 2, PURGED: 2, RESTORED: 2}
DOCUMENT: Mapping[str, Any] = {
    "application": {"id": ID},
    "acls": {"principals": [PRINCIPAL]},
    "topology": [
        {"globalTable": {"topic": "regions"}},
        {"stream": {"topic": "orders", "as": "orders"}},
        {"groupBy": {"from": "orders", "key": "value.customer", "name": "by-customer"}},
        {"reduce": {"materialized": "totals"}},
        {"toStream": None},
        {"to": {"topic": "totals"}},
    ],
}


def document(config: Mapping[str, str], acls: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        **DOCUMENT,
        "application": {"id": ID, "config": dict(config)},
        "acls": {**DOCUMENT["acls"], **(acls or {})},
    }


def permissions(declared: Mapping[str, Any]) -> tuple[Permission, ...]:
    """Return the permissions that are planned for the application."""
    loaded = load_text(yaml.safe_dump(dict(declared)), "orders.yaml")
    compiled = compile_document(loaded.documents[0], TOPICS)
    assert not compiled.missing_sources
    return tuple(
        need.permission for need in application_needs(compiled, loaded.documents[0].application.acls)
    )


@attrs.frozen
class SecuredApplication:
    """The application on the secured cluster. It has a changelog to restore, and no local state."""

    secured_cluster: SecuredCluster
    streams_process: StreamsProcess

    def running(self, declared: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a context manager of a Run
        properties = {
            "bootstrap.servers": self.secured_cluster.broker.address("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{APPLICATION.name}" password="{APPLICATION.password}";',
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "100",
            "repartition.purge.interval.ms": "100",
            # Otherwise, the next run waits for the session timeout of this one.
            "main.consumer.internal.leave.group.on.close": "true",
        }
        is_classic = "group.protocol" not in declared["application"]["config"]
        if is_classic or enables_streams_groups():
            # For versions that ignore that config, and for a JVM that was killed because it did not end.
            properties["main.consumer.session.timeout.ms"] = "6000"
        if is_classic:
            return self.streams_process.running(declared, properties)
        if enables_streams_groups():
            return self.streams_process.running(declared, properties)
        # In Kafka 4.1 the streams protocol is early access, and the broker disables it by default.
        at = self.secured_cluster.broker.bootstrap_servers
        return self.streams_process.running(declared, properties, streamsProtocolAt=at)


@pytest.fixture(scope="module")
def application(secured_cluster: SecuredCluster, streams_process: StreamsProcess) -> SecuredApplication:
    secured_cluster.create(TOPICS)
    secured_cluster.produce("regions")
    return SecuredApplication(secured_cluster, streams_process)


def assert_runs(
    application: SecuredApplication, declared: Mapping[str, Any], granted: tuple[Permission, ...]
) -> None:
    """Assert that the application writes records and purges its repartition topic, without a denial."""
    secured_cluster = application.secured_cluster
    secured_cluster.set_acls(PRINCIPAL, granted)
    log, out = secured_cluster.log_length, secured_cluster.latest_offsets("totals")
    purged = secured_cluster.earliest_offsets(PURGED)  # before the start: the application may be fast
    with application.running(declared) as run:
        secured_cluster.produce("orders")
        run.until(lambda: bool(run.failures) or _has_written_and_purged(secured_cluster, out, purged))
    assert run.failures == []
    assert secured_cluster.denials(log) == set()


def _has_written_and_purged(secured_cluster: SecuredCluster, out: int, purged: int) -> bool:
    return (
        secured_cluster.latest_offsets("totals") > out and secured_cluster.earliest_offsets(PURGED) > purged
    )


@pytest.mark.every_broker
@pytest.mark.parametrize("internal_topics", ["literal", "prefixed"])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_kafka_streams_runs_with_the_planned_permissions(
    application: SecuredApplication, guarantee: str, internal_topics: str
) -> None:
    declared = document({"processing.guarantee": guarantee}, {"internalTopics": internal_topics})
    granted = permissions(declared)
    assert Operation.CREATE not in {permission.operation for permission in granted}
    assert_runs(application, declared, granted)


# With at least once, an application needs only permissions that it also needs with exactly once.
MISSING = [
    pytest.param(
        guarantee,
        permission,
        id=f"{guarantee}-{permission.text}".replace(" ", "-"),
        marks=pytest.mark.soak if guarantee == "at_least_once" else (),
    )
    for guarantee in GUARANTEES
    for permission in permissions(document({"processing.guarantee": guarantee}))
]


@pytest.mark.parametrize(("guarantee", "missing"), MISSING)
def test_kafka_streams_fails_without_one_of_the_permissions(
    application: SecuredApplication, guarantee: str, missing: Permission
) -> None:
    declared, secured_cluster = document({"processing.guarantee": guarantee}), application.secured_cluster
    if secured_cluster.latest_offsets(RESTORED) == 0:  # when only this test is selected
        assert_runs(application, declared, permissions(declared))
    secured_cluster.set_acls(
        PRINCIPAL, [permission for permission in permissions(declared) if permission != missing]
    )
    log = secured_cluster.log_length
    with application.running(declared) as run:
        secured_cluster.produce("orders")
        run.until(lambda: any(is_denial_of(denied, missing) for denied in secured_cluster.denials(log)))
        if missing.operation is not Operation.DELETE:
            run.until(lambda: bool(run.failures) or run.has_ended)
            assert_fails_for(run, missing)
    assert all(is_denial_of(denied, missing) for denied in secured_cluster.denials(log))
    if missing.operation is Operation.DELETE:
        # Kafka Streams continues, and does not purge the records that it has read.
        assert run.failures == []


def is_denial_of(denied: Permission, missing: Permission) -> bool:
    """Return whether the denied permission is the missing one, or the Describe that it implies."""
    return missing.covers(denied)


def assert_fails_for(run: Run, missing: Permission) -> None:
    """Assert that the exception belongs to the kind of resource, and names the resource where Kafka does."""
    error, named = {
        ResourceKind.TOPIC: ("TopicAuthorizationException", f"[{missing.name}]"),
        ResourceKind.GROUP: ("GroupAuthorizationException", f"group: {missing.name}"),
        ResourceKind.TRANSACTIONAL_ID: ("TransactionalIdAuthorizationException", "ransactional"),
    }[missing.kind]
    assert any(error in failure and named in failure for failure in run.failures), run.failures


@pytest.mark.skipif(not has_streams_groups(), reason="brokers have streams groups since 4.1")
@pytest.mark.every_broker
def test_the_streams_protocol_needs_the_same_permissions(application: SecuredApplication) -> None:
    application.secured_cluster.delete_group(ID)
    config = {"group.protocol": "streams"}
    assert_runs(application, document(config), permissions(document(config)))
