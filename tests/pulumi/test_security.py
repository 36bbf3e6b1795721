"""Stacks that connect with TLS, by password or by certificate, in the provider and in the reader."""

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

USER = SaslUser(name="headwater", password="blue-heron-4711")


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority, client_certificate_required=True)
    with own_broker(Settings(sasl_users=(USER,), tls=tls)) as broker:
        yield broker


@pytest.fixture
def secured_deployment(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    secured: Broker,
    certificate_authority: trustme.CA,
    unique: Callable[[str], str],
) -> Deployment:
    """A stack with the broker's CA and a client's certificate and key."""
    deployment = make_deployment(
        tmp_path / "stack", pulumi_toolchain, Cluster(secured.bootstrap_servers), unique
    )
    leaf = certificate_authority.issue_cert("client")
    certificate_authority.cert_pem.write_to_path(str(deployment.stack.folder / "ca.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(deployment.stack.folder / "client.pem"))
    (deployment.stack.folder / "client.key").write_text(pkcs8(leaf.private_key_pem))
    deployment.stack.set_secret("clientKey", "client.key")
    deployment.stack.configure({"caCert": "ca.pem", "clientCert": "client.pem"})
    deployment.declare()
    return deployment


def test_a_stack_over_tls_with_a_password(secured_deployment: Deployment, secured: Broker) -> None:
    secured_deployment.stack.configure(
        {
            "bootstrapServers": secured.address("SASL_SSL"),
            "securityProtocol": "SASL_SSL",
            "saslMechanism": "SCRAM-SHA-512",
            "saslUsername": USER.name,
        }
    )
    secured_deployment.stack.set_secret("saslPassword", USER.password + "-mistyped")
    secured_deployment.refused("AuthenticationRefused")
    secured_deployment.stack.set_secret("saslPassword", USER.password)
    secured_deployment.up()
    secured_deployment.settles_at(4, 4)
    secured_deployment.is_clean()


def test_a_stack_over_tls_with_a_certificate(secured_deployment: Deployment, secured: Broker) -> None:
    secured_deployment.stack.configure(
        {"bootstrapServers": secured.address("SSL"), "securityProtocol": "SSL"}
    )
    secured_deployment.up()
    secured_deployment.settles_at(4, 4)
    secured_deployment.is_clean()
    secured_deployment.stack.configure({"caCert": None})
    secured_deployment.refused("ClusterUnreachable")
