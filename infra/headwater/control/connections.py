"""The open connections of the endpoint: a new one is accepted, and a slow one closed for it.

A client that sends its request slowly, or none, keeps a connection and a thread. If the endpoint then refused
new connections, such clients could keep probes from reading the health. A probe sends its request at once, so
the oldest connection whose request is not complete is closed instead.
"""

import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from threading import Lock

import attrs

MOST = 64
MOST_OF_ADDRESS = 32
"""Less than `MOST`: an address with many connections loses its own ones, not those of other addresses."""
_NETWORK_BITS = 64  # a host can have all addresses of an IPv6 network of this size


@attrs.define(eq=False)
class Connection:
    """An accepted connection. `is_answering`: the request is complete, and the answer is not sent yet."""

    socket: socket.socket
    address: str
    is_answering: bool = False


class Connections:
    """All open connections, the oldest first; any thread may call any method."""

    def __init__(self, most: int = MOST, most_of_address: int = MOST_OF_ADDRESS) -> None:
        self._most = most
        self._most_of_address = most_of_address
        self._open: dict[socket.socket, Connection] = {}
        self._lock = Lock()

    def add(self, accepted: socket.socket, host: str) -> None:
        """Add a connection from the IP address `host`; close another one if there are too many."""
        with self._lock:
            self._open[accepted] = Connection(accepted, network(host))
            excess = superfluous(self._open.values(), self._most, self._most_of_address)
            if excess is not None:
                del self._open[excess.socket]
        if excess is not None:
            with suppress(OSError):  # its client has closed it
                excess.socket.shutdown(socket.SHUT_RDWR)  # ends the wait of its thread, which closes it

    def begin_answer(self, accepted: socket.socket) -> None:
        """Keep a connection, whose request is complete, until its answer is sent."""
        with self._lock:
            if (connection := self._open.get(accepted)) is not None:
                connection.is_answering = True

    def end_answer(self, accepted: socket.socket) -> None:
        """Let the connection be closed if its client reads the answer slowly."""
        with self._lock:
            if (connection := self._open.get(accepted)) is not None:
                connection.is_answering = False

    def remove(self, accepted: socket.socket) -> None:
        with self._lock:
            self._open.pop(accepted, None)


def superfluous(connections: Iterable[Connection], most: int, most_of_address: int) -> Connection | None:
    """Return the connection to close after the last of `connections` was added; None: there is room for it.

    It is the oldest one that is not answering: of the same address if that has too many, else of all.
    """
    found = tuple(connections)
    newest = found[-1]
    of_address = [each for each in found if each.address == newest.address]
    if len(of_address) > most_of_address:
        return next((each for each in of_address if not each.is_answering), None)
    return next((each for each in found if not each.is_answering), None) if len(found) > most else None


def network(host: str) -> str:
    """Return what counts as one address: an IPv4 address, or an IPv6 network."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
