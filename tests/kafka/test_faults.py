"""Brokers that do not answer or do not let us in: a clear problem within seconds, nothing on stderr."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import attrs
import pytest
import trustme
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.answering_broker import BrokerAnswer, ask_brokers
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.toolchain.certificates import pkcs8, server_tls

pytestmark = pytest.mark.broker
PROMPT_SECONDS = 90.0
"""Seconds on an idle machine, and less than the timeout."""
TIMEOUT_SECONDS = 120.0
ALICE = SaslUser("alice", "alice-secret")
BORIS = SaslUser("boris", "boris-secret")


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    """Alice may do nothing, Boris may see what an application needs, and users without a login everything.

    The broker creates topics on demand, and stays in its cluster while it is paused.
    """
    tls = server_tls(certificate_authority, client_certificate_required=True)
    overrides = {"auto.create.topics.enable": "true", "broker.session.timeout.ms": "60000"}
    settings = Settings(sasl_users=(ALICE, BORIS), tls=tls, authorizer=True, overrides=overrides)
    with own_broker(settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        made = {"shop-a-changelog": 1, "shop-in": 2}
        for future in admin.create_topics([NewTopic(*topic) for topic in made.items()]).values():
            future.result()
        assert until(
            lambda: made.keys() <= admin.list_topics(timeout=TIMEOUT_SECONDS).topics.keys(), TIMEOUT_SECONDS
        )
        grants = [
            (ResourceType.TOPIC, "shop-", AclOperation.DESCRIBE),
            (ResourceType.TOPIC, "shop-", AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.GROUP, "shop", AclOperation.DESCRIBE),
        ]
        bindings = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.PREFIXED,
                "User:boris",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in grants
        ]
        for future in admin.create_acls(bindings).values():
            future.result()
        yield broker


@pytest.fixture
def broker(secured: Broker) -> Broker:
    """Return the broker, which a test that failed may have left paused."""
    secured.start()
    secured.resume()
    return secured


def login(broker: Broker, user: SaslUser, mechanism: str = "SCRAM-SHA-512") -> Connection:
    return Connection(
        bootstrap_servers=(broker.address("SASL_PLAINTEXT"),),
        protocol="SASL_PLAINTEXT",
        mechanism=mechanism,
        username=user.name,
        password=user.password,
    )


def refusals(
    connection: Connection,
    capfd: pytest.CaptureFixture[str],
    request: SnapshotRequest | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> tuple[Problem, ...]:
    start = time.monotonic()
    with pytest.raises(ProblemsError) as refusal:
        KafkaClusterReader(connection, timeout).read(request or SnapshotRequest())
    assert time.monotonic() - start < PROMPT_SECONDS
    assert capfd.readouterr() == ("", "")
    return refusal.value.problems


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:9092"])
def test_no_broker_reachable(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    (problem,) = refusals(Connection(bootstrap_servers=(address,)), capfd)
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert problem.expected == f"a broker at {address}"
    assert "refused" in (problem.found or "") or "not known" in (problem.found or "")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_wrong_password_is_refused(
    secured: Broker, mechanism: str, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = attrs.evolve(login(secured, ALICE, mechanism), password="wrong-secret")
    (problem,) = refusals(wrong, capfd)
    assert problem.code is ProblemCode.AUTHENTICATION_REFUSED
    assert "wrong-secret" not in repr(problem)
    assert ask_brokers(wrong, PROMPT_SECONDS) is BrokerAnswer.REFUSED


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_right_password_is_accepted(secured: Broker, mechanism: str) -> None:
    snapshot = KafkaClusterReader(login(secured, BORIS, mechanism)).read(
        SnapshotRequest(prefixes=("shop-",), names=frozenset({"shop-in"}), groups=("shop",))
    )
    assert snapshot.partitions == {"shop-a-changelog": 1, "shop-in": 2}
    assert snapshot.default_replication_factor is None  # Boris may not read the broker's settings
    assert ask_brokers(login(secured, ALICE, mechanism), PROMPT_SECONDS) is BrokerAnswer.ANSWERED


def test_topics_without_permission_are_not_reported_missing(
    secured: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    request = SnapshotRequest(
        names=frozenset({"shop-in"}), groups=("shop",), recorded={"shop-a-changelog": "recorded-id"}
    )
    problems = refusals(login(secured, ALICE), capfd, request)
    assert {problem.code for problem in problems} == {ProblemCode.NOT_AUTHORIZED}
    assert {problem.topic for problem in problems} == {"shop-in", "shop-a-changelog", None}
    assert "consumer group shop" in problems[-1].summary


def test_unsupported_mechanism_is_refused(secured: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    plaintext = attrs.evolve(login(secured, ALICE), bootstrap_servers=(secured.bootstrap_servers,))
    (problem,) = refusals(plaintext, capfd)
    assert problem.code is ProblemCode.AUTHENTICATION_REFUSED


def test_missing_oauth_token_is_reported(secured: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    connection = attrs.evolve(login(secured, ALICE, "OAUTHBEARER"), token_url="http://127.0.0.1:1/token")
    (problem,) = refusals(connection, capfd)
    assert problem.code is ProblemCode.AUTHENTICATION_REFUSED
    assert "token URL" in problem.fix


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SSL"])
def test_plaintext_to_secured_listener_is_reported(
    secured: Broker, listener: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (problem,) = refusals(Connection(bootstrap_servers=(secured.address(listener),)), capfd)
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert "security protocol" in problem.fix


def client_certificate(authority: trustme.CA) -> dict[str, str]:
    leaf = authority.issue_cert("client")
    return {
        "certificate": "".join(part.bytes().decode() for part in leaf.cert_chain_pems),
        "key": pkcs8(leaf.private_key_pem),
    }


def tls(broker: Broker, authority: trustme.CA, **fields: str) -> Connection:
    return Connection(
        bootstrap_servers=(broker.address("SSL"),),
        protocol="SSL",
        ca=authority.cert_pem.bytes().decode(),
        **fields,  # type: ignore[arg-type]
    )


def test_mutual_tls(secured: Broker, certificate_authority: trustme.CA) -> None:
    connection = tls(secured, certificate_authority, **client_certificate(certificate_authority))
    assert KafkaClusterReader(connection).read(SnapshotRequest()).cluster_id == secured.cluster_id
    assert ask_brokers(connection, PROMPT_SECONDS) is BrokerAnswer.ANSWERED


def test_untrusted_broker_certificate_is_reported(secured: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    untrusted = tls(secured, trustme.CA())
    (problem,) = refusals(untrusted, capfd)
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert "certificate verify failed" in (problem.found or "")
    assert ask_brokers(untrusted, PROMPT_SECONDS) is BrokerAnswer.REFUSED


@pytest.mark.parametrize("given", [False, True], ids=["none", "untrusted"])
def test_untrusted_client_certificate_is_reported(
    secured: Broker, certificate_authority: trustme.CA, capfd: pytest.CaptureFixture[str], *, given: bool
) -> None:
    fields = client_certificate(trustme.CA()) if given else {}
    untrusted = tls(secured, certificate_authority, **fields)
    (problem,) = refusals(untrusted, capfd)
    assert problem.code is ProblemCode.AUTHENTICATION_REFUSED
    assert "client certificate" in problem.summary
    assert ask_brokers(untrusted, PROMPT_SECONDS) is BrokerAnswer.REFUSED


def test_tls_to_plaintext_listener_is_reported(secured: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    (problem,) = refusals(Connection(bootstrap_servers=(secured.bootstrap_servers,), protocol="SSL"), capfd)
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert "PLAINTEXT" in problem.fix


def test_invalid_certificate_is_reported_before_connecting() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----"
    connection = Connection(bootstrap_servers=("127.0.0.1:1",), protocol="SSL", ca=broken)
    with pytest.raises(ProblemsError) as refusal:
        KafkaClusterReader(connection)
    assert refusal.value.problems[0].code is ProblemCode.INVALID_CONFIG


def test_hanging_broker_is_reported(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)), 2.0)
    assert until(lambda: brokers(reader), TIMEOUT_SECONDS) == 1
    broker.pause()
    start = time.monotonic()
    with pytest.raises(ProblemsError) as refusal:
        reader.read(SnapshotRequest())
    assert time.monotonic() - start < PROMPT_SECONDS
    assert refusal.value.problems[0].code is ProblemCode.CLUSTER_UNREACHABLE
    assert refusal.value.problems[0].found == "no answer within 2 s"
    broker.resume()
    assert until(lambda: brokers(reader), TIMEOUT_SECONDS) == 1
    assert capfd.readouterr() == ("", "")


def brokers(reader: KafkaClusterReader) -> int:
    """Return how many there are, 0 while none answers: what was asked first may still be due."""
    try:
        return reader.read(SnapshotRequest()).brokers
    except ProblemsError:
        return 0


_SLOW_COORDINATOR = """
import os, signal, sys, threading, time
from pathlib import Path
from headwater.model.problems import ProblemsError
from headwater.kafka import Connection
from headwater.kafka.group_admin import GroupAdmin
server, pid = sys.argv[1], int(sys.argv[2])
patient, impatient = (GroupAdmin(Connection(bootstrap_servers=(server,)), seconds) for seconds in (60, 3))
for admin in (patient, impatient):
    admin.metadata(admin.open())
groups = ["app", "other"]
def stopped():
    try:
        return all("State:\\tT" in each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/status"))
    except FileNotFoundError:  # a thread ended
        return False
def pause():
    os.kill(pid, signal.SIGSTOP)
    while not stopped():  # its threads run for a moment after the signal was sent
        time.sleep(0.01)
patient.groups(groups)  # a new cluster has no coordinators yet
pause()
resumed = threading.Timer(2.0, os.kill, (pid, signal.SIGCONT))
resumed.start()
print(len(patient.groups(groups)))
resumed.join()  # it would end the next pause, too
pause()
try:
    impatient.groups(groups)
except ProblemsError as error:
    print(error.problems[0].summary)
os.kill(pid, signal.SIGCONT)  # the broker answers the request now
print(len(patient.groups(groups)))
"""


def test_slow_answer_of_a_coordinator_is_awaited(broker: Broker) -> None:
    """librdkafka aborts the process on an answer that comes after the timeout."""
    late = "The Kafka brokers did not answer the request to describe 2 groups."
    command = [sys.executable, "-c", _SLOW_COORDINATOR, broker.bootstrap_servers, str(broker.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"2\n{late}\n2\n", "")


def test_requesting_topics_creates_none(broker: Broker) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)))
    request = SnapshotRequest(names=frozenset({"orders"}), recorded={"orders-a-changelog": "some-id"})
    for _ in range(2):
        assert not reader.read(request).topics.keys() & {"orders", "orders-a-changelog"}
        assert not reader.topic_ids(["orders"])


@pytest.mark.timeout(600)  # a busy machine needs 100 s
def test_cluster_whose_only_broker_is_fenced_is_read(own_broker: Callable[..., Broker]) -> None:
    """The controller fences a broker that was paused: answers have no brokers until its next heartbeat."""
    late = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "4000"}
    with own_broker(Settings(overrides=late)) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        reader = KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)), 2)
        for has_topic in (False, True):
            # The broker is fenced half of the time.
            if has_topic:
                assert until(lambda: _has_created(admin, "orders"), TIMEOUT_SECONDS)
            assert until(lambda: _brokers(reader) == 1, TIMEOUT_SECONDS)
            assert until(lambda: _nodes(admin) == 0, TIMEOUT_SECONDS)
            if has_topic:  # an answer with neither brokers nor topics is not used
                assert until(lambda: _brokers(reader) != 1, TIMEOUT_SECONDS)
            assert until(lambda: _brokers(reader) == 1, TIMEOUT_SECONDS)


def _has_created(admin: AdminClient, topic: str) -> bool:
    with suppress(KafkaException):  # no broker is available for a replica
        admin.create_topics([NewTopic(topic, 1)])[topic].result()
    return topic in admin.list_topics(timeout=PROMPT_SECONDS).topics


def _brokers(reader: KafkaClusterReader) -> int | None:
    """Return the number of brokers; None without an answer."""
    try:
        return reader.read(SnapshotRequest()).brokers
    except ProblemsError:
        return None


def _nodes(admin: AdminClient) -> int:
    """Return the number of brokers in the metadata; none is an error if there are no topics either."""
    try:
        return len(admin.list_topics(timeout=PROMPT_SECONDS).brokers)
    except KafkaException:
        return 0
