"""The server properties of a broker, without a start, and the choice of free ports."""

import socket
from pathlib import Path

import pytest

from headwater.toolchain.broker import SaslUser, Settings, readiness
from headwater.toolchain.broker.launch import (
    log_file,
    random_cluster_id,
    server_properties,
    write_files,
)
from headwater.toolchain.broker.readiness import HOST, free_ports, is_free

_PORTS = {"PLAINTEXT": 1, "CONTROLLER": 2}


def test_cluster_ids_differ_and_never_start_like_an_option() -> None:
    drawn = {random_cluster_id() for _ in range(1000)}
    assert len(drawn) == 1000
    assert {len(each) for each in drawn} == {22}
    assert not [each for each in drawn if each.startswith("-")]


def test_only_the_loopback_interface_is_listened_on(tmp_path: Path) -> None:
    listeners = server_properties(Settings(), _PORTS, tmp_path)["listeners"]
    assert listeners == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"


def test_overrides_win(tmp_path: Path) -> None:
    settings = Settings(overrides={"auto.create.topics.enable": "true"})
    assert server_properties(settings, _PORTS, tmp_path)["auto.create.topics.enable"] == "true"


def test_the_session_of_a_broker_is_short_when_it_is_started_again(tmp_path: Path) -> None:
    """The controller refuses a killed broker until its session has ended."""
    sessions = []
    for _ in range(2):
        properties = server_properties(Settings(), _PORTS, tmp_path)
        sessions.append(int(properties["broker.session.timeout.ms"]))
        log_file(tmp_path).touch()
    assert sessions == [30_000, 2_000]


def test_only_the_owner_can_read_passwords_and_they_are_never_shown(tmp_path: Path) -> None:
    settings = Settings(sasl_users=(SaslUser("writer", "hidden-word"),))
    properties = write_files(settings, {**_PORTS, "SASL_PLAINTEXT": 3}, tmp_path)
    assert "hidden-word" in properties.read_text()
    assert properties.stat().st_mode & 0o777 == 0o600
    assert "hidden-word" not in repr(settings)


@pytest.mark.parametrize("password", ["", "two words", 'quo"te', "semi;colon", "brack]et"])
def test_passwords_that_require_quotes_are_refused(password: str) -> None:
    with pytest.raises(ValueError, match="password"):
        SaslUser("writer", password)


def test_chosen_ports_are_free_and_not_those_that_the_system_gives_to_clients() -> None:
    chosen = free_ports(50)
    assert len(set(chosen)) == 50
    assert all(20_000 <= port < 30_000 for port in chosen)
    assert any(map(is_free, chosen))


def test_a_port_in_use_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(readiness, "_RANGE", range(taken, taken + 1))
        (chosen,) = free_ports(1)
    assert chosen != taken
