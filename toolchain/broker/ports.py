"""TCP ports of the loopback interface."""

import socket

HOST = "127.0.0.1"


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports that no process listens on at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return tuple(each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port`; sockets that are only closing do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
