"""The Pulumi CLI, the language host and the Kafka plugin together, on real brokers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headwater.toolchain import PulumiToolchain, file_backend
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.preloaded import folder_of_shims
from tests.pulumi.driver import time_saving_variables
from tests.toolchain.certificates import server_tls

pytestmark = pytest.mark.pulumi
_SECONDS = 90

_TOPIC = """
import pulumi
import pulumi_kafka as kafka

settings = pulumi.Config()
cluster = kafka.Provider("cluster", bootstrap_servers=[settings.require("servers")], tls_enabled=False)
topic = kafka.Topic(
    "topic",
    name=settings.require("topic"),
    partitions=3,
    replication_factor=1,
    config={"cleanup.policy": "compact"},
    opts=pulumi.ResourceOptions(provider=cluster),
)
pulumi.export("topic", topic.name)
"""
_EVERYTHING = """
import pulumi
import pulumi_kafka as kafka

settings = pulumi.Config()
cluster = kafka.Provider(
    "cluster",
    bootstrap_servers=[settings.require("servers")],
    ca_cert=settings.require("authority"),
    sasl_mechanism="scram-sha512",
    sasl_username="operator",
    sasl_password=settings.require_secret("password"),
)
ours = pulumi.ResourceOptions(provider=cluster)
found = kafka.get_topic_output(name="existing", opts=pulumi.InvokeOptions(provider=cluster))
everything = kafka.get_topics_output(opts=pulumi.InvokeOptions(provider=cluster))
kafka.Acl(
    "reads",
    acl_resource_name="existing",
    acl_resource_type="Topic",
    acl_principal="User:reader",
    acl_host="*",
    acl_operation="Read",
    acl_permission_type="Allow",
    opts=ours,
)
kafka.Quota(
    "slow", entity_name="reader", entity_type="user", config={"consumer_byte_rate": "5000"}, opts=ours
)
kafka.UserScramCredential(
    "reader", username="reader", scram_mechanism="SCRAM-SHA-512", password="reads-a-lot", opts=ours
)
kafka.Topic(
    "adopted",
    name="existing",
    partitions=2,
    replication_factor=1,
    opts=pulumi.ResourceOptions(provider=cluster, import_="existing"),
)
pulumi.export("partitions", found.partitions)
pulumi.export("topics", everything.lists.apply(lambda topics: sorted(t.topic_name for t in topics)))
"""

Project = Callable[[str], Callable[..., str]]


@pytest.fixture
def project(pulumi_toolchain: PulumiToolchain, tmp_path: Path) -> Project:
    """Make a stack of a program; the result runs the CLI on it and returns what it prints."""

    def make(program: str) -> Callable[..., str]:
        (tmp_path / "Pulumi.yaml").write_text("name: smoke\nruntime: python\n")
        (tmp_path / "__main__.py").write_text(program)
        state = tmp_path / "state"
        state.mkdir()
        variables = pulumi_toolchain.environment(home=tmp_path / "home")
        environment = {
            **variables,
            "PATH": f"{folder_of_shims()}:{variables['PATH']}",
            "PULUMI_BACKEND_URL": file_backend(state),
            "PULUMI_CONFIG_PASSPHRASE": "secret",
            **time_saving_variables(),
        }

        def pulumi(*arguments: str) -> str:
            done = subprocess.run(
                [pulumi_toolchain.cli, "--non-interactive", *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        pulumi("stack", "init", "test")
        return pulumi

    return make


@pytest.mark.soak  # `pulumi/test_lifecycle` creates topics, `pulumi/test_guards` deletes them
def test_up_creates_a_topic_and_destroy_deletes_it(
    kafka: LocalBroker, project: Project, unique: Callable[[str], str]
) -> None:
    name = unique("smoke")
    pulumi = project(_TOPIC)
    pulumi("config", "set", "servers", kafka.bootstrap_servers)
    pulumi("config", "set", "topic", name)
    pulumi("up", "--yes", "--skip-preview")

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert until(lambda: name in admin.list_topics(timeout=_SECONDS).topics, _SECONDS)
    assert len(admin.list_topics(timeout=_SECONDS).topics[name].partitions) == 3
    assert json.loads(pulumi("stack", "output", "--json")) == {"topic": name}
    pulumi("preview", "--expect-no-changes")

    pulumi("destroy", "--yes", "--skip-preview")
    assert until(lambda: name not in admin.list_topics(timeout=_SECONDS).topics, _SECONDS)


def test_the_plugin_knows_every_resource_and_function_of_the_sdk_over_tls_and_scram(
    own_broker: Callable[..., Broker], certificate_authority: trustme.CA, project: Project, tmp_path: Path
) -> None:
    settings = Settings(
        sasl_users=(SaslUser("operator", "in-charge"),),
        tls=server_tls(certificate_authority),
        authorizer=True,
        overrides={"super.users": "User:ANONYMOUS;User:operator"},
    )
    with own_broker(settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("existing", num_partitions=2)])["existing"].result()
        pulumi = project(_EVERYTHING)
        authority = certificate_authority.cert_pem.bytes().decode()
        public = (f"servers={broker.address('SASL_SSL')}", f"authority={authority}")
        plain = (argument for each in public for argument in ("--plaintext", each))
        pulumi("config", "set-all", *plain, "--secret", "password=in-charge")
        pulumi("up", "--yes", "--skip-preview")

        assert json.loads(pulumi("stack", "output", "--json")) == {"partitions": 2, "topics": ["existing"]}
        reader = AdminClient(
            {
                "bootstrap.servers": broker.address("SASL_PLAINTEXT"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "reader",
                "sasl.password": "reads-a-lot",
                "log_level": 0,
            }
        )
        visible = reader.list_topics(timeout=_SECONDS).topics
        assert set(visible) == {"existing"}, "logged in by the credential, allowed by the ACL"
        pulumi("preview", "--expect-no-changes")
        stored = "".join(path.read_text() for path in (tmp_path / "state").rglob("*.json"))
        assert "in-charge" not in stored
        assert "reads-a-lot" not in stored


def test_a_backend_in_files_has_no_attribute_files(project: Project, tmp_path: Path) -> None:
    """Pulumi writes `.attrs` files in place: if it is killed then, the state cannot be read any more."""
    project("")("up", "--yes", "--skip-preview")
    written = [path.name for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert "test.json" in written
    assert not [name for name in written if name.endswith(".attrs")]


def test_env_puts_the_built_cli_on_the_path(pulumi_toolchain: PulumiToolchain, tmp_path: Path) -> None:
    script = 'eval "$("$0" -m headwater.toolchain env)" && pulumi version && pulumi plugin ls'
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environment.pop("PULUMI_HOME", None)
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.startswith("v3.")
    assert pulumi_toolchain.is_users or "kafka" in done.stdout
