"""Stacks that connect with a password or a certificate, and which credentials their state contains."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.toolchain.certificates import pkcs8, server_tls

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

WRITER = SaslUser(name="writer", password="blue-heron-4711")
AWS_KEY = "amber-finch-9034"


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority, client_certificate_required=True)
    with own_broker(Settings(sasl_users=(WRITER,), tls=tls)) as broker:
        yield broker


@pytest.fixture
def deployment(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, secured: Broker, unique: Callable[[str], str]
) -> Deployment:
    deployment = make_deployment(
        tmp_path / "stack", pulumi_toolchain, Cluster(secured.bootstrap_servers), unique
    )
    deployment.declare()
    return deployment


def by_password(broker: Broker) -> dict[str, str]:
    return {
        "bootstrapServers": broker.address("SASL_PLAINTEXT"),
        "securityProtocol": "SASL_PLAINTEXT",
        "saslMechanism": "SCRAM-SHA-512",
        "saslUsername": WRITER.name,
    }


def connect_by_certificate(deployment: Deployment, broker: Broker, authority: trustme.CA) -> str:
    """Write the files of a client, and set all but its key; return the key."""
    leaf, folder = authority.issue_cert("client"), deployment.stack.folder
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    key = pkcs8(leaf.private_key_pem)
    (folder / "client.key").write_text(key)
    deployment.stack.configure(
        {
            "bootstrapServers": broker.address("SSL"),
            "securityProtocol": "SSL",
            "caCert": "ca.pem",
            "clientCert": "client.pem",
        }
    )
    return key


def decrypted_state(deployment: Deployment) -> str:
    return deployment.stack.succeed("stack", "export", "--show-secrets")


def test_secrets_of_the_environment_are_not_in_the_state(deployment: Deployment, secured: Broker) -> None:
    """Also those of AWS, which the plugin would take as its own, and which a backend in S3 needs."""
    deployment.stack.configure(by_password(secured))
    production = deployment.with_environment(
        HEADWATER_SASL_PASSWORD=WRITER.password, AWS_ACCESS_KEY_ID="AKIA", AWS_SECRET_ACCESS_KEY=AWS_KEY
    )
    production.up()
    production.settles_at(4, 4)
    production.is_clean()
    state = decrypted_state(deployment)
    assert WRITER.name in state
    assert WRITER.password not in state
    assert AWS_KEY not in state


def test_the_next_run_removes_a_secret_that_the_state_contains(
    deployment: Deployment, secured: Broker
) -> None:
    """Earlier versions stored every secret in the state; a stack whose settings have one still does."""
    deployment.stack.configure(by_password(secured))
    deployment.stack.set_secret("saslPassword", WRITER.password)
    deployment.up()
    deployment.settles_at(4, 4)
    assert WRITER.password in decrypted_state(deployment)
    deployment.stack.configure({"saslPassword": None})
    before = deployment.facts()
    production = deployment.with_environment(HEADWATER_SASL_PASSWORD=WRITER.password)
    outcome = production.up()
    assert "2 to create" not in outcome.text
    assert WRITER.password not in decrypted_state(deployment)
    assert deployment.facts() == before


@pytest.mark.parametrize("is_path", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_client_key_of_the_environment_is_not_in_the_state(
    is_path: bool,  # noqa: FBT001 - parameter of a test
    deployment: Deployment,
    secured: Broker,
    certificate_authority: trustme.CA,
) -> None:
    key = connect_by_certificate(deployment, secured, certificate_authority)
    deployment.with_environment(HEADWATER_CLIENT_KEY="client.key" if is_path else key).up()
    deployment.settles_at(4, 4)
    assert key.splitlines()[1] not in decrypted_state(deployment)


def test_a_stack_over_tls_with_a_password(
    deployment: Deployment, secured: Broker, certificate_authority: trustme.CA
) -> None:
    certificate_authority.cert_pem.write_to_path(str(deployment.stack.folder / "ca.pem"))
    over_tls = {"bootstrapServers": secured.address("SASL_SSL"), "securityProtocol": "SASL_SSL"}
    deployment.stack.configure({**by_password(secured), **over_tls, "caCert": "ca.pem"})
    deployment.stack.set_secret("saslPassword", WRITER.password + "-mistyped")
    deployment.refused("AuthenticationRefused")
    deployment.stack.set_secret("saslPassword", WRITER.password)
    deployment.up()
    deployment.settles_at(4, 4)
    deployment.is_clean()


def test_a_stack_over_tls_with_a_certificate(
    deployment: Deployment, secured: Broker, certificate_authority: trustme.CA
) -> None:
    """The provider and the reader read the key from the file that the secret names."""
    connect_by_certificate(deployment, secured, certificate_authority)
    deployment.stack.set_secret("clientKey", "client.key")
    deployment.up()
    deployment.settles_at(4, 4)
    deployment.stack.configure({"caCert": None})
    deployment.refused("ClusterUnreachable")
