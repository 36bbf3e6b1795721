"""A topic is deleted by its id: another topic of the same name stays."""

from collections.abc import Callable, Iterator

import attrs
import pytest
import trustme

from headwater.change.topics import delete_topics
from headwater.kafka import Connection, KafkaClusterReader
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.pulumi.cluster import Cluster
from tests.toolchain.certificates import server_tls

pytestmark = pytest.mark.broker

_SECONDS = 90
USER = SaslUser("headwater", "blue-heron-4711")


@pytest.mark.every_broker
def test_a_topic_is_deleted_by_its_id_and_not_by_its_name(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    cluster = Cluster(kafka.bootstrap_servers)
    retired, replaced = unique("retired"), unique("replaced")
    for name in (retired, replaced):
        cluster.create(name, 1)
    ids = cluster.topic_ids([retired, replaced])
    # Another client has deleted and created the topic since its id was read.
    cluster.delete(replaced)
    cluster.create(replaced, 2)
    assert delete_topics(connection, ids) == {}
    assert until(lambda: cluster.partitions(retired) is None, _SECONDS)
    assert cluster.partitions(replaced) == 2
    assert delete_topics(connection, ids) == {}


def test_two_hundred_topics_are_deleted_in_one_request(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    cluster, prefix = Cluster(kafka.bootstrap_servers), unique("many")
    names = [f"{prefix}-{number}" for number in range(200)]
    for name in names:
        cluster.create(name, 1)
    assert delete_topics(connection, cluster.topic_ids(names)) == {}
    assert until(lambda: not KafkaClusterReader(connection).topic_ids(names), _SECONDS)


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority)
    with own_broker(Settings(sasl_users=(USER,), tls=tls, authorizer=True)) as broker:
        yield broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_with_a_password_needs_permission(
    secured: Broker, certificate_authority: trustme.CA, unique: Callable[[str], str], mechanism: str
) -> None:
    connection = Connection(
        bootstrap_servers=(secured.address("SASL_SSL"),),
        protocol="SASL_SSL",
        mechanism=mechanism,
        username=USER.name,
        password=USER.password,
        ca=certificate_authority.cert_pem.bytes().decode(),
    )
    cluster = Cluster(secured.bootstrap_servers)
    kept = unique("kept")
    cluster.create(kept, 1)
    ids = {kept: cluster.topic_id(kept)}
    assert "AUTHORIZATION_FAILED" in delete_topics(connection, ids)[kept]
    assert cluster.partitions(kept) == 1
    cluster.delete(kept)
    with pytest.raises(OSError, match=r"(?i)authentication|credentials"):
        delete_topics(attrs.evolve(connection, password="wrong"), ids)


def test_no_broker_that_answers_is_an_error() -> None:
    with pytest.raises(OSError, match="refused"):
        delete_topics(Connection(bootstrap_servers=("127.0.0.1:1",)), {"a": "Pb8QEjjNSZeqdoOWZfNKSA"})
