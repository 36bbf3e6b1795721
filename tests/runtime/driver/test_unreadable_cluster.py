"""A client whose brokers do not answer says so once, and once when they answer again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any, cast

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver import topic_watch
from headwater_spark.driver.topic_watch import ClusterWatch, TopicWatch
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from tests.runtime.spark.kafka_topics import Topics

_SECONDS = 60.0
_UNREACHABLE = Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="No Kafka broker can be reached.")
_EVENTS = ["cluster not readable, retrying", "cluster readable again"]
_NEVER_SECONDS = 1_000_000.0
_DOCUMENT = "application: {id: app}\ntopology: [{stream: in}, {to: out}]\n"
_USER = SaslUser("headwater", "first-secret")


@attrs.define
class _Topics:
    """`answers` is whether each request is answered, one after the other; the last one is repeated."""

    answers: list[bool]
    has_changed_: bool = False
    asked: int = 0
    connections: int = 1

    def check(self) -> object:
        raise ProblemsError([_UNREACHABLE])

    def reconnect(self) -> None:
        self.connections += 1

    def has_changed(self) -> bool:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if not answer:
            raise ProblemsError([_UNREACHABLE])
        return self.has_changed_


@attrs.define
class _Clock:
    """Each reading is `step` seconds after the one before: a request has a begin and an end."""

    step: float
    now: float = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class _Layout:
    repartition_topics: tuple[str, ...] = ()


class _Specs:
    layout = _Layout()
    progress = None
    has_threads = True
    check_requested = Event()


@attrs.define
class _Offsets:
    """Counts requests: with brokers that do not answer, each waits for its timeout."""

    failure: KafkaError | None = None
    requests: int = 0

    def read_backlogs(self, *_: object) -> dict[str, Any]:
        self.requests += 1
        if self.failure is not None:
            raise KafkaException(self.failure)
        return {}


def _topic_watch(cluster_watch: ClusterWatch, offsets: _Offsets, topics: _Topics | None = None) -> TopicWatch:
    unused = cast("Any", None)
    return TopicWatch(
        topics=cast("Any", topics),
        cluster_watch=cluster_watch,
        offsets=cast("Any", offsets),
        rounds=unused,
        purger=unused,
        uneven=unused,
        specs=cast("Any", _Specs()),
        queries={},
        progress_watch=unused,
        input_watch=unused,
        on_errors=unused,
        check_interval_seconds=_NEVER_SECONDS,
        purge_interval_seconds=_NEVER_SECONDS,
        layout_changes=Lock(),
    )


def test_an_outage_is_logged_when_it_begins_and_when_it_ends() -> None:
    answers = [True, False, False, False, True, True, False, True]
    offsets, watch = _Offsets(), ClusterWatch(topics=_Topics(answers), clock=_Clock(10.0))
    own_watch = _topic_watch(watch, offsets)
    found = []
    with capture_logs() as logs:
        for _ in answers:
            watch.observe()
            own_watch._check(fully=False)
            own_watch._observe_progress()
            found.append(watch.problem)
    assert [not problem for problem in found] == answers
    assert set(found) == {"", "No Kafka broker can be reached."}
    assert [line["event"] for line in logs] == [
        "cluster not readable, retrying",
        "cluster readable again",
    ] * 2
    assert offsets.requests == sum(answers), "no other request waits for its timeout"


@pytest.mark.parametrize(
    ("code", "requests"),
    [
        (KafkaError._TIMED_OUT, 1),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, 1),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, 3),  # of one query: the others are known
    ],
)
def test_without_a_coordinator_only_one_request_for_all_queries_waits(code: int, requests: int) -> None:
    """The clocks of the queries are observed afterwards: too late, and the client seems to hang."""
    offsets = _Offsets(KafkaError(code))
    watch = _topic_watch(ClusterWatch(topics=_Topics([True])), offsets)
    assert watch._read_backlogs_of({"0": (), "1": ()}) == {}
    assert offsets.requests == requests


def test_a_restart_of_a_broker_is_no_outage() -> None:
    """Connections are refused at once meanwhile, and closed again while the broker starts."""
    answers = [True, False, False, False, True, False, False, True]
    watch = ClusterWatch(topics=_Topics(answers), clock=_Clock(0.5))
    with capture_logs() as logs:
        for _ in answers:
            watch.observe()
            assert not watch.problem
    assert not logs


def test_a_change_is_taken_once() -> None:
    topics = _Topics([True], has_changed_=True)
    watch = ClusterWatch(topics=topics)
    assert not watch.take_change()
    watch.observe()
    assert watch.take_change()
    assert not watch.take_change()
    topics.answers = [False]
    watch.observe()
    assert not watch.take_change()


def test_a_failure_of_a_query_is_checked_with_a_new_connection() -> None:
    topics, failures = _Topics([True]), [0]
    watch = ClusterWatch(topics=topics, failures=lambda: failures[0])
    for failed, connections in ((0, 1), (1, 2), (1, 2), (3, 3), (3, 3)):
        failures[0] = failed
        watch.observe()
        assert topics.connections == connections


def test_a_topic_check_that_fails_for_one_reason_is_logged_and_opens_a_new_connection_once() -> None:
    """It opens connections of its own, while the connection of the other watch may still be open."""
    topics = _Topics([True])
    watch = ClusterWatch(topics=topics)
    own_watch = _topic_watch(watch, _Offsets(), topics)
    with capture_logs() as logs:
        for _ in range(2):
            assert not own_watch._check(fully=True)
            watch.observe()
            assert topics.connections == 2
    assert [(line["event"], line["reason"]) for line in logs] == [
        ("topic check failed, retrying", _UNREACHABLE.summary)
    ]


@pytest.mark.broker
def test_another_password_is_noticed_when_a_query_fails(own_broker: Callable[..., Broker]) -> None:
    """Brokers keep the connections that are open. Workers that open new ones have no answer in time."""
    with own_broker(Settings(sasl_users=(_USER,))) as broker, capture_logs() as logs:
        topics = Topics(broker.bootstrap_servers)
        topics.create({"in": 1, "out": 1})
        application_topics = ApplicationTopics(load_text(_DOCUMENT, "app.yaml").documents[0], _login(broker))
        application_topics.prepare()
        failures = [0]
        watch = ClusterWatch(topics=application_topics, failures=lambda: failures[0])
        with _running(watch):
            topics.set_password(_USER.name, "other-secret")
            assert not until(lambda: watch.problem, 3.0)
            failures[0] = 1
            assert until(lambda: watch.problem, _SECONDS)
            assert watch.problem.startswith("The Kafka brokers refuse the credentials: ")
            topics.set_password(_USER.name, _USER.password)
            assert until(lambda: not watch.problem, _SECONDS)
    assert [line["event"] for line in logs if line["event"].startswith("cluster")] == _EVENTS


def _login(broker: Broker) -> Connection:
    return Connection(
        bootstrap_servers=(broker.address("SASL_PLAINTEXT"),),
        protocol="SASL_PLAINTEXT",
        mechanism="SCRAM-SHA-512",
        username=_USER.name,
        password=_USER.password,
    )


def test_progress_is_observed_while_an_expansion_changes_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut may hold the lock for minutes if Kafka fails meanwhile: health must not depend on it."""
    monkeypatch.setattr(topic_watch, "_LAYOUT_SECONDS", 0.05)
    offsets = _Offsets()
    watch = _topic_watch(ClusterWatch(topics=_Topics([True])), offsets)
    with watch._layout_changes, _running(watch):
        assert until(lambda: offsets.requests >= 2, _SECONDS)


@pytest.mark.broker
@pytest.mark.timeout(300)
def test_outages_of_a_real_broker_are_noticed_and_their_ends_too(own_broker: Callable[[], Broker]) -> None:
    """It is paused, and killed later."""
    with own_broker() as broker, capture_logs() as logs:
        Topics(broker.bootstrap_servers).create({"in": 1, "out": 1})
        connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
        topics = ApplicationTopics(load_text(_DOCUMENT, "app.yaml").documents[0], connection)
        topics.prepare()
        watch = ClusterWatch(topics=topics)
        with _running(watch):
            assert not until(lambda: watch.problem, 2.0)
            for begin, end in ((broker.pause, broker.resume), (broker.kill, broker.start)):
                begin()
                assert until(lambda: watch.problem, _SECONDS)
                end()
                assert until(lambda: not watch.problem, _SECONDS)
                assert not until(lambda: watch.problem, 2.0)
    assert [line["event"] for line in logs if line["event"].startswith("cluster")] == _EVENTS * 2


@contextmanager
def _running(watch: TopicWatch | ClusterWatch) -> Iterator[None]:
    stopping = Event()
    thread = Thread(target=watch.run, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_SECONDS)
