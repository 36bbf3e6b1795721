"""TCP ports of the loopback interface."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

HOST = "127.0.0.1"
# Programs that choose no port get a higher one from the system: from 32768 (Linux) or 49152 (macOS).
_RANGE = range(20_000, 30_000)
_CHOICE = random.SystemRandom()


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports that no process listens on at this moment.

    Programs that choose no port, as clients, do not get one of these ports: they could take it before the
    caller listens on it, or while a broker restarts.
    """
    with ExitStack() as stack:
        return tuple(stack.enter_context(_bound()) for _ in range(count))


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port`; sockets that are only closing do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _bind(probe, port)


@contextmanager
def _bound() -> Iterator[int]:
    """Yield a port that no other socket can have within the context."""
    with socket.socket() as bound:
        tried = _CHOICE.sample(_RANGE, min(100, len(_RANGE)))
        if not any(_bind(bound, port) for port in tried):
            bound.bind((HOST, 0))
        yield bound.getsockname()[1]


def _bind(each: socket.socket, port: int) -> bool:
    try:
        each.bind((HOST, port))
    except OSError:
        return False
    return True
