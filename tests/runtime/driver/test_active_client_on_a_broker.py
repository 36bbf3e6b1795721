"""Clients of an application choose the active one by its record on a broker."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemsError
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.active_client import decide, membership
from headwater_spark.driver.active_client.membership import ActiveClient, LockedFile
from headwater_spark.driver.preflight import checkpoint_lock
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.every_broker]

_SECONDS = 60.0


@attrs.define
class _Clients:
    """Clients of one application, each with threads of its own."""

    connection: Connection
    application: str
    topic: str
    problems: list[Problem] = attrs.field(factory=list)
    started: list[tuple[ActiveClient, Event, Thread]] = attrs.field(factory=list)

    def new(self, name: str, lock: LockedFile | None = None, *, is_fenced: bool = False) -> ActiveClient:
        return ActiveClient(self.connection, self.application, name, lock, is_fenced=is_fenced)

    def start(self, client: ActiveClient) -> Event:
        """Let a client become active, and renew its record; return the event that stops it."""
        stopping = Event()

        def run() -> None:
            if client.acquire([self.topic], stopping):
                client.run(self.problems.append, stopping)

        thread = Thread(target=run)
        thread.start()
        self.started.append((client, stopping, thread))
        return stopping

    def stop(self, client: ActiveClient, *, records_end: bool = True) -> None:
        """Stop a client; without `records_end`, as if its process was killed."""
        for each, stopping, thread in self.started:
            if each is client:
                stopping.set()
                thread.join(_SECONDS)
        if records_end:
            client.close()

    def close(self) -> None:
        for client, _, _ in self.started:
            self.stop(client)


@pytest.fixture
def clients_(kafka: local.LocalBroker, unique: Callable[[str], str]) -> Iterator[_Clients]:
    topic = unique("orders")
    Topics(kafka.bootstrap_servers).create({topic: 1})
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    with closing(_Clients(connection, unique("shop"), topic)) as created:
        yield created


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the times after which a client that is silent is replaced."""
    monkeypatch.setattr(decide, "EXPIRY_SECONDS", 4.0)
    monkeypatch.setattr(decide, "SETTLE_SECONDS", 1.0)
    monkeypatch.setattr(membership, "_RENEWAL_SECONDS", 0.5)


def _is_active(client: ActiveClient) -> bool:
    return until(lambda: client.proved_at > 0, _SECONDS)


@pytest.mark.usefixtures("short")
def test_a_second_client_waits_until_the_first_one_has_ended(
    clients_: _Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "EXPIRY_SECONDS", 10.0)  # a busy machine may delay a renewal
    first, second = clients_.new("first"), clients_.new("second")
    clients_.start(first)
    assert _is_active(first)
    clients_.start(second)
    assert until(lambda: second.waits_for.startswith("first on "), _SECONDS)
    assert not until(lambda: second.proved_at > 0, 2 * decide.EXPIRY_SECONDS), "the first one renews"
    assert first.proved_at
    clients_.stop(first)
    assert _is_active(second)
    assert (second.waits_for, clients_.problems) == ("", [])


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("is_fenced", [False, True])
def test_a_client_takes_over_from_a_silent_one_which_ends_with_a_problem(
    clients_: _Clients, *, is_fenced: bool
) -> None:
    first, second = (clients_.new(name, is_fenced=is_fenced) for name in ("first", "second"))
    clients_.start(first)
    assert _is_active(first)
    clients_.stop(first, records_end=False)
    with capture_logs() as logs:
        clients_.start(second)
        assert _is_active(second)
    (line,) = [each for each in logs if each["event"] == "client takes over: the active one is silent"]
    assert line["replaced"].startswith("first on ")
    stopping, renewals = Event(), Thread(target=lambda: first.run(clients_.problems.append, stopping))
    renewals.start()  # the first one continues
    try:
        assert until(lambda: clients_.problems, _SECONDS)
    finally:
        stopping.set()
        renewals.join(_SECONDS)
    (problem,) = clients_.problems
    assert problem.summary == f"Another client of {clients_.application} is active."
    assert problem.found is not None
    assert problem.found.startswith("second on ")
    with pytest.raises(ProblemsError):
        first.check()
    first.close()
    second.check()
    assert second.proved_at


@pytest.mark.usefixtures("short")
def test_a_lost_spark_application_is_named_before_the_next_client_is_active(
    clients_: _Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors of the next client start while it waits until no worker trusts the lost one."""
    monkeypatch.setattr(decide, "SETTLE_SECONDS", 10 * _SECONDS)
    first, second = clients_.new("first"), clients_.new("second")
    first.spark = "spark://master:7077 app-1"
    clients_.start(first)
    assert first.lost_spark.get(timeout=_SECONDS) == "", "it is active, and has replaced none"
    clients_.stop(first, records_end=False)
    clients_.start(second)
    assert second.lost_spark.get(timeout=_SECONDS) == first.spark
    assert not second.proved_at
    clients_.stop(second)
    assert second.lost_spark.get(timeout=_SECONDS) == ""


def test_a_client_replaces_a_killed_one_with_the_same_checkpoint_at_once(
    clients_: _Clients, tmp_path: Path
) -> None:
    """Its own lock of the checkpoint proves that the other process has died."""
    folder = str(tmp_path)
    with checkpoint_lock(folder, clients_.application) as lock:
        first = clients_.new("first", lock)
        clients_.start(first)
        assert _is_active(first)
        clients_.stop(first, records_end=False)
    with checkpoint_lock(folder, clients_.application) as lock:
        second = clients_.new("second", lock)
        assert second.acquire([clients_.topic], Event())
        assert not second.has_waited
        second.close()


def test_a_client_waits_although_the_folder_was_created_again(clients_: _Clients, tmp_path: Path) -> None:
    """Then both clients have locked a file, at the same path."""
    folder, moved = tmp_path / "checkpoint", tmp_path / "moved"
    with checkpoint_lock(str(folder), clients_.application) as held:
        first = clients_.new("first", held)
        clients_.start(first)
        assert _is_active(first)
        folder.rename(moved)
        with checkpoint_lock(str(folder), clients_.application) as lock:
            second = clients_.new("second", lock)
            clients_.start(second)
            assert until(lambda: second.waits_for.startswith("first on "), _SECONDS)
            clients_.close()


@pytest.mark.usefixtures("short")
def test_the_time_in_which_a_client_starts_spark_counts(clients_: _Clients) -> None:
    first, second = clients_.new("first"), clients_.new("second")
    clients_.start(first)
    assert _is_active(first)
    clients_.stop(first, records_end=False)
    second.start_observing([clients_.topic])
    assert until(lambda: second.may_claim, _SECONDS)
    assert not second.proved_at
    assert second.acquire([clients_.topic], Event())
    assert not second.has_waited
    second.close()
    third = clients_.new("third")
    third.start_observing([clients_.topic])
    third.close()  # Spark did not start
    observer = f"{clients_.application}-observer"
    assert until(lambda: observer not in {each.name for each in threading.enumerate()}, _SECONDS)


def test_a_stop_ends_the_wait(clients_: _Clients) -> None:
    first, second = clients_.new("first"), clients_.new("second")
    clients_.start(first)
    assert _is_active(first)
    stopping = clients_.start(second)
    assert until(lambda: second.waits_for, _SECONDS)
    stopping.set()
    clients_.started[-1][2].join(_SECONDS)
    assert not clients_.started[-1][2].is_alive()
    assert not second.proved_at


def test_without_the_permission_clients_are_not_noticed(
    clients_: _Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    monkeypatch.setattr(membership, "read_records", refuse)
    client = clients_.new("first")
    with capture_logs() as logs:
        assert client.acquire([clients_.topic], Event())
    assert client.topic == ""
    (line,) = [each for each in logs if each["log_level"] == "warning"]
    assert line["required"] == f"permission Read on group {clients_.application}-headwater-client"
