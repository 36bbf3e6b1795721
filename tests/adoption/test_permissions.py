"""`headwater import --all` with missing permissions, and its number of requests."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from headwater.kafka import Connection
from headwater.kafka.admin import Admin
from headwater.kafka.kafka_reader import survey_cluster
from headwater.planner.adoption import recognize_applications
from headwater.planner.evidence.names import INTERNAL_NAMES
from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.acls.secured_cluster import SecuredCluster
from tests.contract.real_cluster import RealCluster
from tests.preloaded import headwater

pytestmark = pytest.mark.broker

USER = SaslUser("headwater", "blue-heron-4711")
STREAMS_CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


@pytest.fixture(scope="module")
def secured_broker(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(sasl_users=(USER,), authorizer=True)) as broker:
        cluster = RealCluster(broker.bootstrap_servers)
        cluster.create("shop-in", 2)
        cluster.create("shop-x-changelog", 2, STREAMS_CONFIG)
        with cluster.member("shop", "shop-in"):
            pass
        yield broker


def grant(broker: Broker, kind: ResourceType, operation: AclOperation) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    binding = AclBinding(
        kind, "*", ResourcePatternType.LITERAL, f"User:{USER.name}", "*", operation, AclPermissionType.ALLOW
    )
    for future in admin.create_acls([binding]).values():
        future.result()


def imported(broker: Broker, folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "client.properties").write_text(
        f"bootstrap.servers={broker.address('SASL_PLAINTEXT')}\nsecurity.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule "
        f'required username="{USER.name}" password="{USER.password}";\n'
    )
    command = ("import", "--all", "--command-config", "client.properties", "--application-id", "shop")
    return subprocess.run(
        [headwater(), *command],
        cwd=folder,
        env={"COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_missing_permission_is_reported(secured_broker: Broker, tmp_path: Path) -> None:
    SecuredCluster(secured_broker).set_acls(f"User:{USER.name}", ())
    nothing = imported(secured_broker, tmp_path)
    assert nothing.returncode == 1
    assert "NotAuthorized" in nothing.stderr  # the group of --application-id
    grant(secured_broker, ResourceType.GROUP, AclOperation.DESCRIBE)
    no_topics = imported(secured_broker, tmp_path)
    assert (no_topics.returncode, no_topics.stdout) == (1, "")
    assert "No topics are visible" in no_topics.stderr
    grant(secured_broker, ResourceType.TOPIC, AclOperation.DESCRIBE)
    no_settings = imported(secured_broker, tmp_path)
    assert no_settings.returncode == 1
    assert "do not let this user read the settings of topic" in no_settings.stderr
    grant(secured_broker, ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS)
    done = imported(secured_broker, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "id: shop\n" in done.stdout
    assert (
        USER.password
        not in nothing.stderr + no_topics.stderr + no_settings.stderr + done.stdout + done.stderr
    )


def test_the_number_of_requests_does_not_depend_on_the_number_of_topics(
    secured_broker: Broker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a broker without the groups of other tests: there is one request for each."""
    admins: list[Admin] = []
    initialize = Admin.__init__

    def record(admin: Admin, connection: Connection, timeout_seconds: float) -> None:
        initialize(admin, connection, timeout_seconds)
        admins.append(admin)

    monkeypatch.setattr(Admin, "__init__", record)
    cluster, app = RealCluster(secured_broker.bootstrap_servers), unique("app")

    def found() -> int:
        admins.clear()
        seen = survey_cluster(
            Connection(bootstrap_servers=(secured_broker.bootstrap_servers,)), INTERNAL_NAMES
        )
        return len(
            next(each.topics for each in recognize_applications(seen, [app]).applications if each.id == app)
        )

    cluster.create(f"{app}-s0-changelog", 1, STREAMS_CONFIG)
    assert found() == 1
    few = sum(admin.requests for admin in admins)
    for number in range(1, 12):
        cluster.create(f"{app}-s{number}-changelog", 1, STREAMS_CONFIG)
    assert found() == 12
    assert sum(admin.requests for admin in admins) == few < 10
