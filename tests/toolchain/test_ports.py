"""The choice of free ports."""

import socket

import pytest

from headwater.toolchain.broker import readiness
from headwater.toolchain.broker.readiness import HOST, free_ports, is_free


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
