"""`headwater doctor` on real brokers: it finds what is wrong, changes nothing and always ends."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from infra.cli.main import main
from infra.model.acls import ANY_NAME, Acl, Operation, Pattern, Permission, ResourceKind
from infra.observe.acl_bindings import acl_binding, filter_for
from tests.toolchain.certificates import server_tls
from toolchain.broker import Broker, SaslUser, Settings

pytestmark = pytest.mark.broker

_USER = SaslUser("operator", "in-charge-9")
_UP = ("describe-topics", "create-topics", "alter-topics", "alter-configs")

Checks = Mapping[str, Mapping[str, Any]]


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
    return set(admin.list_topics(timeout=10).topics)


def status_of(checks: Checks, *names: str) -> set[str]:
    return {checks[name]["status"] for name in names}


def test_a_new_cluster_is_fine_and_stays_empty(own_broker: Callable[..., Broker]) -> None:
    overrides = {
        "auto.create.topics.enable": "true",
        "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    }
    with own_broker(Settings(overrides=overrides)) as broker:
        code, checks = Doctor()("--bootstrap-server", broker.bootstrap_servers)
        assert code == 0
        connection = checks["connection"]
        assert (connection["status"], broker.cluster_id in connection["text"]) == ("ok", True)
        assert status_of(checks, "tls", "credentials", "brokers", "authorizer", "autoscaling") == {"ok"}
        assert checks["auto-creation"]["status"] == "warning"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
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


def test_permissions_of_a_user_are_found(secured: Broker, login: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": secured.bootstrap_servers})
    granted = [
        *(
            Permission(ResourceKind.TOPIC, "headwater-", each, Pattern.PREFIXED)
            for each in (Operation.CREATE, Operation.ALTER)
        ),
        Permission(ResourceKind.GROUP, ANY_NAME, Operation.READ),
        Permission(ResourceKind.TRANSACTIONAL_ID, "headwater-", Operation.WRITE, Pattern.PREFIXED),
        Permission(ResourceKind.CLUSTER, "kafka-cluster", Operation.DESCRIBE),
    ]
    bindings = [acl_binding(Acl(f"User:{_USER.name}", ANY_NAME, permission)) for permission in granted]
    for future in admin.create_acls(bindings).values():
        future.result()
    try:
        _, checks = Doctor(login)()
        assert status_of(checks, "describe-topics", "create-topics", "alter-topics") == {"ok"}
        assert checks["alter-configs"]["status"] == "warning"
        _, checks = Doctor(login)("--for", "run")
        assert checks["transactional-ids"]["status"] == "ok"
        assert "create-topics" not in checks
        code, checks = Doctor(login)("--for", "plan")
        assert code == 0
        assert "alter-configs" not in checks
    finally:
        for future in admin.delete_acls([filter_for(f"User:{_USER.name}")]).values():
            future.result()


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


def test_a_broker_that_does_not_answer_ends_the_check_in_time(own_broker: Callable[..., Broker]) -> None:
    with own_broker() as broker:
        broker.pause()
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "infra.cli", "doctor", "--bootstrap-server", broker.bootstrap_servers],
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert time.monotonic() - started < 60
        broker.resume()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ClusterUnreachable: No Kafka broker can be reached" in done.stdout
    assert done.stderr == ""
