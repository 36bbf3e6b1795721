"""`headwater doctor` on real brokers: it finds what is wrong, changes nothing and always ends."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from click.testing import CliRunner
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headwater.cli.doctor.permissions import observe_permissions
from headwater.cli.main import main
from headwater.compiler import compile_documents
from headwater.doctor import Status
from headwater.doctor.permissions import Purpose, permission_findings
from headwater.kafka.group_admin import GroupAdmin
from headwater.model.acls import ANY_NAME, Operation, Pattern, Permission, ResourceKind
from headwater.model.topology import TopologyDocument
from headwater.planner import acls
from headwater.planner.acls import application_needs, headwater_needs
from headwater.spec import load_documents
from headwater.toolchain import machine
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.acls.secured_cluster import SecuredCluster
from tests.broker_version import can_be_cordoned, has_streams_groups
from tests.toolchain.certificates import server_tls

pytestmark = pytest.mark.broker

_USER = SaslUser("operator", "in-charge-9")
_PRINCIPAL = f"User:{_USER.name}"
_DOCUMENT = """
application:
  id: shop
  config: {processing.guarantee: exactly_once_v2}
topics: {counts: {partitions: 2}}
topology:
  - stream: {topic: orders}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: per-customer}
  - toStream:
  - to: {topic: counts}
"""
_UP = ("describe-topics", "create-topics", "alter-topics", "alter-configs")

_VERSION = cache(machine.Program.version)

Checks = Mapping[str, Mapping[str, Any]]


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the version of each program of this machine once: Maven and Pulumi take most of a second."""
    monkeypatch.setattr(machine.Program, "version", _VERSION)


@attrs.frozen
class Doctor:
    """Runs the command with these variables; `output` is what the last run printed."""

    variables: Mapping[str, str] = attrs.field(factory=dict)

    def __call__(self, *arguments: str) -> tuple[int, Checks]:
        """Return the exit code, and check → finding."""
        environment = {"HEADWATER_BOOTSTRAP_SERVERS": "", **self.variables}
        result = CliRunner().invoke(main, ["doctor", *arguments, "--format", "json"], env=environment)
        for name, value in self.variables.items():
            assert not name.endswith("PASSWORD") or value not in result.output
        checks = json.loads(result.stdout)["checks"]
        return result.exit_code, {check["check"]: check for check in checks}


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    settings = Settings(sasl_users=(_USER,), tls=server_tls(certificate_authority), authorizer=True)
    with own_broker(settings) as broker:
        yield broker


@pytest.fixture
def cluster(secured: Broker) -> Iterator[SecuredCluster]:
    """The cluster with topic `orders`; the user has no permissions before and after the test."""
    found = SecuredCluster(secured)
    if "orders" not in found.topics():
        found.create({"orders": 2})
    yield found
    found.set_acls(_PRINCIPAL, [])


@pytest.fixture
def login(certificate_authority: trustme.CA, secured: Broker) -> Mapping[str, str]:
    return {
        "HEADWATER_BOOTSTRAP_SERVERS": secured.address("SASL_SSL"),
        "HEADWATER_SECURITY_PROTOCOL": "SASL_SSL",
        "HEADWATER_SASL_MECHANISM": "SCRAM-SHA-512",
        "HEADWATER_SASL_USERNAME": _USER.name,
        "HEADWATER_SASL_PASSWORD": _USER.password,
        "HEADWATER_CA_CERT": certificate_authority.cert_pem.bytes().decode(),
    }


def names_of(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=60).topics)


def status_of(checks: Checks, *names: str) -> set[str]:
    return {checks[name]["status"] for name in names}


@pytest.fixture(scope="module")
def broker_of_module(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    protocols = ["classic", "consumer", *(["streams"] if has_streams_groups() else [])]
    overrides = {
        "auto.create.topics.enable": "true",
        "group.coordinator.rebalance.protocols": ",".join(protocols),
    }
    with own_broker(Settings(overrides=overrides)) as broker:
        yield broker


@pytest.fixture
def empty(broker_of_module: Broker) -> Broker:
    """Return a broker without topics, which a test may pause."""
    broker_of_module.resume()
    return broker_of_module


@pytest.mark.every_broker
def test_a_new_cluster_is_fine_and_stays_empty(empty: Broker) -> None:
    code, checks = Doctor()("--bootstrap-server", empty.bootstrap_servers)
    assert code == 0
    connection = checks["connection"]
    assert (connection["status"], empty.cluster_id in connection["text"]) == ("ok", True)
    assert status_of(checks, "tls", "credentials", "brokers", "authorizer", "autoscaling") == {"ok"}
    assert checks["auto-creation"]["status"] == "warning"
    admin = AdminClient({"bootstrap.servers": empty.bootstrap_servers})
    assert names_of(admin) == set()


def test_the_connection_is_read_from_a_properties_file(secured: Broker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={secured.bootstrap_servers}\n")
    code, checks = Doctor()("--command-config", str(file))
    assert code == 0
    assert status_of(checks, "connection", *_UP) == {"ok"}


def test_missing_permissions_are_named(secured: Broker, login: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": secured.bootstrap_servers})
    before = names_of(admin)
    code, checks = Doctor(login)()
    assert code == 0, "without a stack, permissions are checked with an example name"
    assert checks["credentials"]["text"] == "accepted: SCRAM-SHA-512, user operator"
    assert checks["tls"]["status"] == "ok"
    assert status_of(checks, *_UP) == {"warning"}
    assert "deny Create on topic headwater-doctor" in checks["create-topics"]["text"]
    assert status_of(checks, "streams-groups", "auto-creation") == {"unknown"}
    assert names_of(admin) == before


def test_permissions_of_a_user_are_found(cluster: SecuredCluster, login: Mapping[str, str]) -> None:
    granted = [
        *(
            Permission(ResourceKind.TOPIC, "headwater-", each, Pattern.PREFIXED)
            for each in (Operation.CREATE, Operation.ALTER)
        ),
        Permission(ResourceKind.GROUP, ANY_NAME, Operation.READ),
        Permission(ResourceKind.TRANSACTIONAL_ID, "headwater-", Operation.WRITE, Pattern.PREFIXED),
        Permission(ResourceKind.CLUSTER, "kafka-cluster", Operation.DESCRIBE),
    ]
    cluster.set_acls(_PRINCIPAL, granted)
    _, checks = Doctor(login)()
    assert status_of(checks, "describe-topics", "create-topics", "alter-topics") == {"ok"}
    assert checks["alter-configs"]["status"] == "warning"
    _, checks = Doctor(login)("--for", "run")
    assert checks["transactional-ids"]["status"] == "ok"
    assert "create-topics" not in checks
    code, checks = Doctor(login)("--for", "plan")
    assert code == 0
    assert "alter-configs" not in checks


@pytest.fixture
def documents(tmp_path: Path) -> Sequence[TopologyDocument]:
    (tmp_path / "shop.yaml").write_text(_DOCUMENT)
    return load_documents([tmp_path / "shop.yaml"]).documents


@pytest.mark.parametrize("purpose", [Purpose.PLAN, Purpose.UP])
def test_the_permissions_that_headwater_acls_prints_are_enough(
    purpose: Purpose, cluster: SecuredCluster, documents: Sequence[TopologyDocument]
) -> None:
    printed = headwater_needs(acls.Purpose(purpose.value), compile_documents(documents, {"orders": 2}))
    cluster.set_acls(_PRINCIPAL, [need.permission for need in printed])
    assert problems_of(cluster, documents, purpose) == []
    cluster.set_acls(_PRINCIPAL, [need.permission for need in printed if need.permission.name == "orders"])
    denied = problems_of(cluster, documents, purpose)
    missing = "headwater-ownership, shop-headwater-doctor"
    assert denied[0] == f"The brokers deny Describe on topics counts, {missing}."
    created = f"The brokers deny Create on topics counts, {missing}."
    configured = "The brokers deny AlterConfigs on topics counts, shop-headwater-doctor."
    assert {created, configured} & set(denied) == ({created, configured} if purpose is Purpose.UP else set())


def test_documents_with_acls_need_permissions_on_the_cluster(cluster: SecuredCluster, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(f"{_DOCUMENT}acls: {{principals: ['User:shop']}}\n")
    documents = load_documents([tmp_path / "shop.yaml"]).documents
    printed = headwater_needs(acls.Purpose.UP, compile_documents(documents, {"orders": 2}))
    cluster.set_acls(_PRINCIPAL, [need.permission for need in printed])
    assert problems_of(cluster, documents, Purpose.UP) == []
    others = [need.permission for need in printed if need.permission.kind is not ResourceKind.CLUSTER]
    cluster.set_acls(_PRINCIPAL, others)
    denied = [f"The brokers deny {each} on the cluster." for each in ("Describe", "Alter")]
    assert problems_of(cluster, documents, Purpose.UP) == denied
    assert problems_of(cluster, documents, Purpose.PLAN) == denied[:1]


def test_the_permissions_of_an_application_are_enough_to_run_it(
    cluster: SecuredCluster, documents: Sequence[TopologyDocument]
) -> None:
    compiled = compile_documents(documents, {"orders": 2})
    printed = [need.permission for need in application_needs(compiled[0], None)]
    seen = Permission(ResourceKind.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
    own = [Permission(ResourceKind.TOPIC, "shop-", Operation.DESCRIBE, Pattern.PREFIXED), seen]
    cluster.set_acls(_PRINCIPAL, [*printed, *own])
    assert problems_of(cluster, documents, Purpose.RUN) == []
    without = [each for each in printed if each.kind is not ResourceKind.TRANSACTIONAL_ID]
    cluster.set_acls(_PRINCIPAL, [*without, *own])
    assert problems_of(cluster, documents, Purpose.RUN) == [
        "The brokers deny Write on transactional id shop-*."
    ]


def problems_of(
    cluster: SecuredCluster, documents: Sequence[TopologyDocument], purpose: Purpose
) -> list[str]:
    """Return the texts of all findings that are not fine, for the user without super powers."""
    connection = cluster.connection(_USER)
    admin = GroupAdmin(connection, 15)
    admin.metadata(admin.open())
    facts = observe_permissions(
        connection,
        admin,
        documents,
        purpose,
        with_groups=True,
        existing=cluster.topics(),
        with_ownership=purpose is not Purpose.RUN,
    )
    admin.settle()
    return [finding.text for finding in permission_findings(facts) if finding.status is not Status.OK]


def test_wrong_credentials_and_an_unknown_authority_are_distinguished(login: Mapping[str, str]) -> None:
    code, checks = Doctor({**login, "HEADWATER_SASL_PASSWORD": "wrong-secret"})()
    assert code == 1
    assert checks["credentials"]["status"] == "error"
    assert "AuthenticationRefused" in checks["credentials"]["text"]
    assert status_of(checks, "connection", "tls") == {"ok"}
    other = trustme.CA().cert_pem.bytes().decode()
    code, checks = Doctor({**login, "HEADWATER_CA_CERT": other})()
    assert code == 1
    assert "No TLS connection" in checks["connection"]["text"]
    assert status_of(checks, "tls", "credentials") == {"unknown"}


def test_one_dead_bootstrap_server_is_a_warning(secured: Broker) -> None:
    code, checks = Doctor()("--bootstrap-server", f"{secured.bootstrap_servers},127.0.0.1:1")
    assert code == 0
    assert checks["bootstrap-servers"]["status"] == "warning"
    assert "127.0.0.1:1 (Connection refused)" in checks["bootstrap-servers"]["text"]


@pytest.mark.every_broker
@pytest.mark.skipif(not can_be_cordoned(), reason="brokers before Kafka 4.3 cannot be cordoned")
def test_cordoned_brokers_are_named(own_broker: Callable[..., Broker]) -> None:
    with own_broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        cordoned = ConfigEntry("cordoned.log.dirs", "*", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[cordoned])
        admin.incremental_alter_configs([resource])[resource].result(90)

        def checks() -> Checks:
            return Doctor()("--bootstrap-server", broker.bootstrap_servers)[1]

        assert until(lambda: "cordoned-brokers" in checks(), 90)
        assert checks()["cordoned-brokers"]["status"] == "error"


def test_a_broker_that_does_not_answer_ends_the_check_in_time(empty: Broker) -> None:
    empty.pause()
    try:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "headwater.cli", "doctor", "--bootstrap-server", empty.bootstrap_servers],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert time.monotonic() - started < 90
    finally:
        empty.resume()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ClusterUnreachable: No Kafka broker can be reached" in done.stdout
    assert done.stderr == ""
