"""Real Kafka Streams with the planned rights: with all of them it runs, without any one it does not."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import yaml

from infra.compiler import compile_document
from infra.model.acls import Operation, ResourceKind, Right
from infra.planner.acls import application_needs
from infra.spec import load_text
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.acls.streams_process import Run, StreamsProcess

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


def rights(declared: Mapping[str, Any]) -> tuple[Right, ...]:
    """What is planned for the application."""
    loaded = load_text(yaml.safe_dump(dict(declared)), "orders.yaml")
    compiled = compile_document(loaded.documents[0], TOPICS)
    assert not compiled.missing_sources
    return tuple(need.right for need in application_needs(compiled, loaded.documents[0].application.acls))


@attrs.frozen
class Trial:
    """The application on the secured broker; there is something to restore, and nothing local."""

    secured_cluster: SecuredCluster
    streams: StreamsProcess

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
            # So that the next run need not wait until this one's session is over.
            "main.consumer.internal.leave.group.on.close": "true",
        }
        if "group.protocol" not in declared["application"]["config"]:
            return self.streams.running(declared, properties)
        # The broker of 4.1, where the protocol is early access, has it switched off.
        at = self.secured_cluster.broker.bootstrap_servers
        return self.streams.running(declared, properties, streamsProtocolAt=at)


@pytest.fixture(scope="module")
def trial(secured_cluster: SecuredCluster, streams: StreamsProcess) -> Trial:
    secured_cluster.create(TOPICS)
    secured_cluster.produce("regions")
    return Trial(secured_cluster, streams)


def works(trial: Trial, declared: Mapping[str, Any], granted: tuple[Right, ...]) -> None:
    """Assert that records come out, that state is kept, and that what was read is purged, with no denial."""
    secured_cluster = trial.secured_cluster
    secured_cluster.set_acls(PRINCIPAL, granted)
    log, out = secured_cluster.log_length, secured_cluster.ends("totals")
    with trial.running(declared) as run:
        secured_cluster.produce("orders")
        purged = secured_cluster.begins(PURGED)
        run.until(lambda: bool(run.failures) or _has_worked(secured_cluster, out, purged))
    assert run.failures == []
    assert secured_cluster.denials(log) == set()


def _has_worked(secured_cluster: SecuredCluster, out: int, purged: int) -> bool:
    return secured_cluster.ends("totals") > out and secured_cluster.begins(PURGED) > purged


@pytest.mark.parametrize("internal_topics", ["literal", "prefixed"])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_planned_rights_are_enough(trial: Trial, guarantee: str, internal_topics: str) -> None:
    declared = document({"processing.guarantee": guarantee}, {"internalTopics": internal_topics})
    granted = rights(declared)
    assert Operation.CREATE not in {right.operation for right in granted}
    works(trial, declared, granted)


LACKING = [
    pytest.param(guarantee, right, id=f"{guarantee}-{right.text}".replace(" ", "-"))
    for guarantee in GUARANTEES
    for right in rights(document({"processing.guarantee": guarantee}))
]


@pytest.mark.parametrize(("guarantee", "lacking"), LACKING)
def test_without_any_one_of_them_the_right_error_appears(
    trial: Trial, guarantee: str, lacking: Right
) -> None:
    declared, secured_cluster = document({"processing.guarantee": guarantee}), trial.secured_cluster
    if secured_cluster.ends(RESTORED) == 0:  # when this test runs alone
        works(trial, declared, rights(declared))
    secured_cluster.set_acls(PRINCIPAL, [right for right in rights(declared) if right != lacking])
    log = secured_cluster.log_length
    with trial.running(declared) as run:
        secured_cluster.produce("orders")
        run.until(lambda: any(is_about(denied, lacking) for denied in secured_cluster.denials(log)))
        if lacking.operation is not Operation.DELETE:
            run.until(lambda: bool(run.failures) or run.has_ended)
            fails_for(run, lacking)
    assert all(is_about(denied, lacking) for denied in secured_cluster.denials(log))
    if lacking.operation is Operation.DELETE:
        # Kafka Streams goes on and keeps what it has read.
        assert run.failures == []


def is_about(denied: Right, lacking: Right) -> bool:
    """Whether the authorizer's denial names what lacks, or the Describe that would have come with it."""
    return lacking.covers(denied)


def fails_for(run: Run, lacking: Right) -> None:
    """Assert that the exception is of the resource's kind and names it, as far as Kafka does."""
    error, named = {
        ResourceKind.TOPIC: ("TopicAuthorizationException", f"[{lacking.name}]"),
        ResourceKind.GROUP: ("GroupAuthorizationException", f"group: {lacking.name}"),
        ResourceKind.TRANSACTIONAL_ID: ("TransactionalIdAuthorizationException", "ransactional"),
    }[lacking.kind]
    assert any(error in failure and named in failure for failure in run.failures), run.failures


def test_the_streams_protocol_runs_with_the_same_rights(trial: Trial) -> None:
    trial.secured_cluster.forget_group(ID)
    config = {"group.protocol": "streams"}
    works(trial, document(config), rights(document(config)))
