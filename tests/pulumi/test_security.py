"""A stack that talks TLS, with a password or with a certificate; the provider and the reader alike."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import World, make_world
from tests.toolchain.certificates import pkcs8, server_tls
from toolchain import PulumiToolchain
from toolchain.broker import Broker, SaslUser, Settings

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

USER = SaslUser(name="headwater", password="blue-heron-4711")


@pytest.fixture
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority, client_certificate_required=True)
    with own_broker(Settings(sasl_users=(USER,), tls=tls)) as broker:
        yield broker


@pytest.fixture
def secured_world(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    secured: Broker,
    certificate_authority: trustme.CA,
    unique: Callable[[str], str],
) -> World:
    """A stack with the broker's authority and a client's certificate and key."""
    world = make_world(tmp_path / "stack", pulumi_toolchain, Cluster(secured.bootstrap_servers), unique)
    leaf = certificate_authority.issue_cert("client")
    certificate_authority.cert_pem.write_to_path(str(world.stack.folder / "ca.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(world.stack.folder / "client.pem"))
    (world.stack.folder / "client.key").write_text(pkcs8(leaf.private_key_pem))
    world.stack.set_secret("clientKey", "client.key")
    world.stack.configure({"caCert": "ca.pem", "clientCert": "client.pem"})
    world.declare()
    return world


def test_a_stack_over_tls_with_a_password(secured_world: World, secured: Broker) -> None:
    secured_world.stack.configure(
        {
            "bootstrapServers": secured.address("SASL_SSL"),
            "securityProtocol": "SASL_SSL",
            "saslMechanism": "SCRAM-SHA-512",
            "saslUsername": USER.name,
        }
    )
    secured_world.stack.set_secret("saslPassword", USER.password + "-mistyped")
    secured_world.refused("AuthenticationRefused")
    secured_world.stack.set_secret("saslPassword", USER.password)
    secured_world.up()
    secured_world.settles_at(4, 4)
    secured_world.is_clean()


def test_a_stack_over_tls_with_a_certificate(secured_world: World, secured: Broker) -> None:
    secured_world.stack.configure({"bootstrapServers": secured.address("SSL"), "securityProtocol": "SSL"})
    secured_world.up()
    secured_world.settles_at(4, 4)
    secured_world.is_clean()
    secured_world.stack.configure({"caCert": None})
    secured_world.refused("ClusterUnreachable")
