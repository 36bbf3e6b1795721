"""The broker itself, on a real one."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest
import trustme
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headwater.toolchain import KafkaDistribution, ToolchainError
from headwater.toolchain.broker import Broker, SaslUser, Settings, process
from headwater.toolchain.broker.readiness import HOST, free_ports, is_serving, until
from tests.broker_data import copy_data
from tests.toolchain.certificates import server_tls

pytestmark = pytest.mark.broker

MakeBroker = Callable[..., Broker]
SECONDS = 60
_DEFAULT_PARTITIONS = 7
_PAUSE_SECONDS = 4.0
"""Longer than the session that a broker has after a restart."""


def admin(broker: Broker, protocol: str = "PLAINTEXT", **settings: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": broker.address(protocol),
            "security.protocol": protocol,
            "log_level": 0,
            "socket.timeout.ms": SECONDS * 1_000,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def topics(client: AdminClient, timeout: float = SECONDS) -> set[str]:
    return set(client.list_topics(timeout=timeout).topics)


def create(client: AdminClient, name: str) -> None:
    client.create_topics([NewTopic(name, num_partitions=1)])[name].result()
    assert until(lambda: name in topics(client), SECONDS), (
        "the broker learns of it a moment after the controller"
    )


def port_of(broker: Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


@attrs.frozen
class Started:
    """A broker, and the port that was chosen first: another process had taken it."""

    broker: Broker
    taken: int


@pytest.fixture(scope="module")
def started(own_broker: MakeBroker) -> Iterator[Started]:
    """A broker that has responded once is ready: on a busy machine the next answer may come too late."""
    answers = iter([True])

    def answered_once(port: int, cluster_id: str) -> bool:
        return is_serving(port, cluster_id) and next(answers, False)

    with socket.create_server((HOST, 0)) as other, ExitStack() as stack:
        taken = other.getsockname()[1]
        choices = iter([(taken, free_ports(1)[0]), free_ports(2)])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(process, "is_serving", answered_once)
            patch.setattr(process, "free_ports", lambda _count: next(choices))
            broker = stack.enter_context(own_broker())
        yield Started(broker, taken)


@pytest.fixture
def broker(started: Started) -> Broker:
    """Return a broker to pause, kill and restart; a test that failed may have left it so."""
    started.broker.start()
    started.broker.resume()
    return started.broker


def test_free_ports_that_another_process_takes_are_chosen_again(started: Started, broker: Broker) -> None:
    assert broker.is_running
    assert port_of(broker) != started.taken


def test_topics_survive_a_restart_and_a_kill_at_the_same_address(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    """The start after the kill waits for the port of the broker, because clients know it.

    A client that connects to a port of its own machine where nothing listens may be given that very port.
    """
    address, kept = broker.bootstrap_servers, unique("kept")
    create(admin(broker), kept)
    broker.pause()
    broker.restart()  # a paused broker does not stop by itself
    assert kept in topics(admin(broker))
    broker.kill()
    assert not broker.is_running
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.bind((HOST, port_of(broker)))
        client.listen()
        threading.Timer(8.0, client.close).start()
        broker.start()
    assert kept in topics(admin(broker))
    assert broker.bootstrap_servers == address


def test_a_paused_broker_responds_only_after_it_is_resumed(broker: Broker) -> None:
    broker.pause()
    assert not is_serving(port_of(broker), broker.cluster_id)
    broker.resume()
    assert until(lambda: is_serving(port_of(broker), broker.cluster_id), SECONDS)


def test_overrides_reach_the_broker(secured: Broker, unique: Callable[[str], str]) -> None:
    client, name = admin(secured), unique("defaulted")
    client.create_topics([NewTopic(name)])[name].result()
    assert until(lambda: name in topics(client), SECONDS)
    assert len(client.list_topics(timeout=SECONDS).topics[name].partitions) == _DEFAULT_PARTITIONS


def test_a_broker_without_cpu_time_for_some_seconds_is_not_fenced(
    secured: Broker, unique: Callable[[str], str]
) -> None:
    """A fenced broker gets no replica and leads no partition, so requests of other tests would fail."""
    client = admin(secured)
    for number in range(3):
        secured.pause()
        threading.Event().wait(_PAUSE_SECONDS)
        secured.resume()
        client.create_topics([NewTopic(name := unique(f"paused-{number}"), 1)])[name].result()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_only_sasl_users_can_log_in(secured: Broker, mechanism: str) -> None:
    login = {"sasl_mechanism": mechanism, "sasl_username": "writer"}
    assert isinstance(topics(admin(secured, "SASL_PLAINTEXT", sasl_password="right", **login)), set)
    with pytest.raises(KafkaException):
        topics(admin(secured, "SASL_PLAINTEXT", sasl_password="wrong", **login), timeout=2)


def test_the_authorizer_refuses_what_no_acl_allows(secured: Broker, unique: Callable[[str], str]) -> None:
    user = admin(
        secured, "SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="writer", sasl_password="right"
    )
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        create(user, "refused")
    create(admin(secured), allowed := unique("allowed"))
    assert allowed in topics(admin(secured))


def test_tls_clients_need_the_certificate_authority_and_a_certificate_where_one_is_required(
    secured: Broker, certificate_authority: trustme.CA, tmp_path: Path
) -> None:
    authority, certificate, key = tmp_path / "ca.pem", tmp_path / "client.pem", tmp_path / "client.key"
    certificate_authority.cert_pem.write_to_path(authority)
    client = certificate_authority.issue_cert("client@example.org")
    client.cert_chain_pems[0].write_to_path(certificate)
    client.private_key_pem.write_to_path(key)
    trusting = {"ssl_ca_location": str(authority)}
    own = {"ssl_certificate_location": str(certificate), "ssl_key_location": str(key)}
    assert "__consumer_offsets" not in topics(admin(secured, "SSL", **trusting, **own))
    with pytest.raises(KafkaException):
        topics(admin(secured, "SSL", **trusting), timeout=2)
    trustme.CA().cert_pem.write_to_path(authority)
    with pytest.raises(KafkaException):
        topics(admin(secured, "SSL", **trusting, **own), timeout=2)


def test_a_client_that_changes_too_much_is_throttled(secured: Broker, unique: Callable[[str], str]) -> None:
    """The last test of this broker: the quota stays."""
    large = unique("large")
    secured.limit_topic_changes(0.5)
    client = admin(secured)
    client.create_topics([NewTopic(large, num_partitions=50)])[large].result()
    with pytest.raises(KafkaException, match="TIMED_OUT"):
        topics(client, timeout=1)
    other = admin(secured)
    assert until(lambda: large in topics(other), SECONDS), "another connection is served"


def test_a_broker_ends_with_the_process_that_started_it(
    kafka_distribution: KafkaDistribution, tmp_path: Path
) -> None:
    copy_data(kafka_distribution, tmp_path, Settings())
    paths = (kafka_distribution.java, kafka_distribution.jars, kafka_distribution.class_data)
    program = f"""
import pathlib, signal
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker
paths = map(pathlib.Path, {[str(path) for path in paths if path is not None]!r})
broker = Broker(KafkaDistribution(*paths), pathlib.Path({str(tmp_path)!r}))
broker.start()
print(broker.pid, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert lives(pid)
        owner.kill()
    assert until(lambda: not lives(pid), SECONDS)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("log.retention.ms", "soon", "Invalid value soon for configuration log.retention.ms"),
        ("authorizer.class.name", "no.such.Authorizer", r"(?s)no\.such\.Authorizer.*Its log: .*broker\.log"),
    ],
)
def test_a_failed_start_reports_the_reason_and_leaves_no_process(
    kafka_distribution: KafkaDistribution, tmp_path: Path, key: str, value: str, reason: str
) -> None:
    """The first setting is refused when the data is formatted, the second one by the broker."""
    settings = Settings(overrides={key: value})
    if key != "log.retention.ms":
        copy_data(kafka_distribution, tmp_path, settings)
    broker = Broker(kafka_distribution, tmp_path, settings)
    with pytest.raises(ToolchainError, match=reason) as failure:
        broker.start()
    assert "\tat " not in str(failure.value)
    assert not broker.is_running


def test_a_chosen_port_in_use_is_reported(kafka_distribution: KafkaDistribution, tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ToolchainError, match=f"Port {port} is in use"):
            Broker(kafka_distribution, tmp_path, port=port).start()


def lives(pid: int) -> bool:
    """Return whether the process runs and is not a zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(state.stdout.strip()) and "Z" not in state.stdout


@pytest.fixture(scope="module")
def secured(own_broker: MakeBroker, certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority, client_certificate_required=True)
    users = (SaslUser("writer", "right"), SaslUser("reader", "also"))
    overrides = {"num.partitions": str(_DEFAULT_PARTITIONS)}
    with own_broker(Settings(sasl_users=users, tls=tls, authorizer=True, overrides=overrides)) as broker:
        yield broker
