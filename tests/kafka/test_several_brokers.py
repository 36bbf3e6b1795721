"""What commands say while some of several brokers are stopped, as in a rolling restart."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.broker_connection import BrokerConnection, Message
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.wire import ResponseReader
from headwater.model.cluster import EvidenceSource, LiveGroup, UnreadCause
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KafkaDistribution
from tests.kafka.several_brokers import several_brokers

pytestmark = pytest.mark.broker
_DOCUMENT = """\
application: {id: APPLICATION, config: {replication.factor: FACTOR}}
topology: [{stream: orders}, {groupByKey: }, {count: {materialized: counts}}]
"""
_SECONDS = 90
_GROUPS = tuple(f"group-{number}" for number in range(12))
_COMPACT = {"cleanup.policy": "compact"}
_NOT_REGISTERED = 102
"""Kafka's error `BROKER_ID_NOT_REGISTERED`."""
_COORDINATORS = 5
"""Partitions of the topic of the coordinators: the last is on the third broker, the others on the first."""


@pytest.fixture(scope="module")
def brokers(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, ...]]:
    """Three brokers with the topic `orders` and coordinators of groups; tests stop one after another."""
    with several_brokers(kafka_distribution, tmp_path_factory.mktemp("brokers")) as started:
        admin = _admin(started)
        assert until(lambda: _alive(admin) == 3, _SECONDS)
        replicas = [[1]] * (_COORDINATORS - 1) + [[3]]
        offsets = NewTopic("__consumer_offsets", _COORDINATORS, replica_assignment=replicas, config=_COMPACT)
        for future in admin.create_topics([NewTopic("orders", 3, 3), offsets]).values():
            future.result()
        # The broker that answers learns of new topics a moment later.
        assert until(lambda: all("orders" in _topics(each) for each in started), _SECONDS)
        assert len(_reader(started[0], _SECONDS).group_facts(frozenset(_GROUPS))[0]) == 0
        yield started


def _admin(brokers: tuple[Broker, ...]) -> AdminClient:
    servers = ",".join(broker.bootstrap_servers for broker in brokers)
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def _alive(admin: AdminClient) -> int:
    return len(admin.list_topics(timeout=_SECONDS).brokers)


def _topics(broker: Broker) -> set[str]:
    return set(_admin((broker,)).list_topics(timeout=_SECONDS).topics)


def _reader(broker: Broker, seconds: float) -> KafkaClusterReader:
    return KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)), seconds)


def _run(
    command: str,
    folder: Path,
    broker: Broker,
    *options: str,
    factor: int = 3,
    application: str = "app",
    source: str = "orders",
) -> Result:
    file = folder / "app.yaml"
    text = _DOCUMENT.replace("FACTOR", str(factor)).replace("APPLICATION", application)
    file.write_text(text.replace("orders", source))
    server = ("--bootstrap-server", broker.bootstrap_servers, *options)
    return CliRunner().invoke(main, (command, str(file), *server), prog_name="headwater")


def _doctor(broker: Broker) -> str:
    server = ("--bootstrap-server", broker.bootstrap_servers)
    return " ".join(CliRunner().invoke(main, ("doctor", *server), prog_name="headwater").stdout.split())


def test_replicas_are_spread_over_racks_and_those_that_are_not_are_reported(
    brokers: tuple[Broker, ...], tmp_path: Path, unique: Callable[[str], str]
) -> None:
    first, *_ = brokers
    spread, narrow = unique("spread"), unique("narrow")
    topics = [
        NewTopic(spread, 6, 2),
        NewTopic(narrow, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "1"}),
    ]
    request = SnapshotRequest(names=frozenset({spread, narrow}))

    def racks() -> dict[str, int | None]:
        found = _reader(first, _SECONDS).read(request).topics
        return {name: found[name].racks for name in found.keys() & request.names}

    with _created(_admin(brokers), topics):
        # The first broker may not know the topics and all other brokers yet.
        assert until(lambda: racks() == {spread: 2, narrow: 1}, _SECONDS), racks()
        read = _reader(first, _SECONDS).read(request)
        assert read.registered is not None
        assert read.registered.racks == {"rack-a", "rack-b"}
        planned = " ".join(_run("plan", tmp_path, first, source=narrow).stderr.split())
        assert "1 topic of app has replicas on fewer racks than possible." in planned
        assert "fewer racks" not in _run("plan", tmp_path, first, source=spread).stderr
        assert "1 partition has all replicas in one rack, of 2." in _doctor(first)


@contextmanager
def _created(admin: AdminClient, topics: list[NewTopic]) -> Iterator[None]:
    """Create topics, and delete them at the end."""
    for future in admin.create_topics(topics).values():
        future.result()
    try:
        yield
    finally:
        for future in admin.delete_topics([topic.topic for topic in topics]).values():
            future.result()


def test_a_stopped_broker_is_registered_and_does_not_refuse_a_plan(
    brokers: tuple[Broker, ...], tmp_path: Path
) -> None:
    first, _, third = brokers
    third.stop()
    admin = _admin(brokers)
    assert until(lambda: _alive(admin) == 2, _SECONDS)
    planned = _run("plan", tmp_path, first)
    assert planned.exit_code == ExitCode.DONE, planned.output
    assert "only 2 brokers answer." in " ".join(planned.stderr.split())
    first_setup = planned.stderr
    assert "1 topic of app has no more replicas in sync than writes require." in " ".join(first_setup.split())
    assert "broker 3 does not answer" in " ".join(first_setup.split())
    too_many = _run("plan", tmp_path, first, factor=4)
    assert too_many.exit_code == ExitCode.REFUSED
    assert "only 3 broker(s) are registered" in " ".join(too_many.stderr.split())


def test_drift_and_doctor_name_the_stopped_broker(brokers: tuple[Broker, ...], tmp_path: Path) -> None:
    first, _, third = brokers
    third.stop()
    assert until(lambda: _alive(_admin((first,))) == 2, _SECONDS)
    for form in ("text", "json", "markdown", "html", "junit"):
        found = _run("drift", tmp_path, first, "--format", form)
        assert found.exit_code == ExitCode.DRIFT, found.stderr
        text = " ".join(found.stdout.split())
        assert "no more replicas in sync than writes require" in text, text
        assert "broker 3 does not answer" in text, text
    checked = _doctor(first)
    assert "1 of 3 registered brokers is stopped or starting: broker 3." in checked
    assert "no leader (broker 3 does not answer)" in checked, "the topic of the coordinators"


def test_replicas_on_a_broker_that_is_not_registered_are_reported(
    brokers: tuple[Broker, ...], tmp_path: Path
) -> None:
    first, _, third = brokers
    third.kill()
    reader = _reader(first, _SECONDS)
    request = SnapshotRequest(names=frozenset({"orders"}))
    assert until(lambda: reader.read(request).topics["orders"].silent == {3}, _SECONDS)
    assert until(lambda: _is_unregistered(first, 3), _SECONDS)
    assert until(lambda: "is not registered" in _doctor(first), _SECONDS)
    registered = reader.read(request).registered
    assert registered is not None
    assert registered.is_unregistered(3)
    planned = " ".join(_run("plan", tmp_path, first).stderr.split())
    assert "1 topic of app has replicas on brokers that are not registered." in planned
    assert "orders (broker 3)" in planned


def _is_unregistered(at: Broker, id_: int) -> bool:
    """Unregister a broker; return whether the controller has accepted it, now or earlier."""
    connection = Connection(bootstrap_servers=(at.bootstrap_servers,))
    with BrokerConnection(connection, at.bootstrap_servers, _SECONDS, None) as connected:

        def read(reader: ResponseReader) -> int:
            reader.skip(4)  # throttle time
            return reader.number(2)

        body = id_.to_bytes(4, "big") + b"\x00"
        return connected.request(Message("UnregisterBroker", 64, 0, 0), body, _SECONDS, read) in (
            0,
            _NOT_REGISTERED,
        )


def test_a_request_without_an_answer_names_the_request_and_the_brokers(brokers: tuple[Broker, ...]) -> None:
    first, second, third = brokers
    for broker in (second, third):
        broker.kill()
    admin = _admin((first,))
    assert until(lambda: _alive(admin) == 1, _SECONDS)
    orders = _reader(first, 20.0).read(SnapshotRequest(names=frozenset({"orders"}))).topics["orders"]
    assert (orders.in_sync, orders.leaderless, orders.replication_factor) == (1, 0, 3)
    server = ("--bootstrap-server", first.bootstrap_servers)
    checked = CliRunner().invoke(main, ("doctor", *server), prog_name="headwater").stdout
    assert "replicas that are not in sync" in checked or "no leader" in checked, checked
    available = [id_ for id_ in _GROUPS if _partition(id_) < _COORDINATORS - 1]
    assert 0 < len(available) < len(_GROUPS)
    described = _reader(first, 3.0).read(SnapshotRequest(groups=_GROUPS)).groups
    assert described == {id_: LiveGroup.without_coordinator(id_) for id_ in _GROUPS if id_ not in available}
    reader = _reader(first, _SECONDS)
    reader.read(SnapshotRequest())
    [unread] = reader.group_facts(frozenset())[1]  # a group that is not listed may read a topic
    assert (unread.source, unread.cause) == (EvidenceSource.GROUPS, UnreadCause.NO_COORDINATOR)
    requests = GroupAdmin(reader.connection, 3.0)
    requests.metadata(requests.open())
    problem = _refused(lambda: requests.groups(_GROUPS))
    assert problem.code is ProblemCode.REQUEST_NOT_ANSWERED
    assert problem.summary.startswith("The Kafka brokers did not answer the request to describe 12 groups")
    assert (problem.found or "").startswith(f"{first.bootstrap_servers} answers, and names ")


def test_a_plan_needs_no_coordinator_unless_topics_are_lost(
    brokers: tuple[Broker, ...], tmp_path: Path
) -> None:
    """It would create the topics of a group that cannot be seen, and only they matter."""
    first, second, third = brokers
    for broker in (second, third):
        broker.kill()
    assert until(lambda: _alive(_admin((first,))) == 1, _SECONDS)
    (id_, *_) = (id_ for id_ in _GROUPS if _partition(id_) == _COORDINATORS - 1)
    planned = _run("plan", tmp_path, first, application=id_, factor=2)  # broker 3 is not registered
    assert planned.exit_code == ExitCode.DONE, planned.output
    assert f"{id_}-counts-changelog" in planned.stdout


def _partition(group: str) -> int:
    """Return the partition of the coordinator of a group (`String#hashCode` of its id)."""
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFF_FFFF
    return min(code, (1 << 32) - code) % _COORDINATORS


def _refused(call: Callable[[], object]) -> Problem:
    start = time.monotonic()
    with pytest.raises(ProblemsError) as refusal:
        call()
    assert time.monotonic() - start < _SECONDS
    return refusal.value.problems[0]
