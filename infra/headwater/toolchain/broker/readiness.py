"""Free ports, and waiting until a program serves on its port."""

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

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
        return tuple(stack.enter_context(_bound_port()) for _ in range(count))


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port`; sockets that are only closing do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _try_bind(probe, port)


@contextmanager
def _bound_port() -> Iterator[int]:
    """Yield a port that no other socket can have within the context."""
    with socket.socket() as bound:
        tried = _CHOICE.sample(_RANGE, min(100, len(_RANGE)))
        if not any(_try_bind(bound, port) for port in tried):
            bound.bind((HOST, 0))
        yield bound.getsockname()[1]


def _try_bind(each: socket.socket, port: int) -> bool:
    try:
        each.bind((HOST, port))
    except OSError:
        return False
    return True


_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.1
_PART_OF_WAIT = 1 / 20
_PAUSE_PER_USED_SECOND, _LONGEST_PAUSE_AFTER_USE_SECONDS = 4, 0.5
"""After a check that needs CPU time, such as a check that reads many records."""

T = TypeVar("T")


def until(condition: Callable[[], T], timeout: float) -> T:
    """Return the first true result of `condition`, or its last one when `timeout` seconds have passed.

    The pauses become longer: each check takes CPU time of the processes that have to make it true.
    """
    start, used = time.monotonic(), time.thread_time()
    while not (result := condition()) and (waited := time.monotonic() - start) < timeout:
        after_use = (time.thread_time() - used) * _PAUSE_PER_USED_SECOND
        pause = min(max(_PAUSE_SECONDS, waited * _PART_OF_WAIT), _LONGEST_PAUSE_SECONDS)
        time.sleep(max(pause, min(after_use, _LONGEST_PAUSE_AFTER_USE_SECONDS)))
        used = time.thread_time()
    return result


def is_listening(port: int) -> bool:
    """Return whether a process of this machine accepts connections at the port."""
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def is_serving(port: int, cluster_id: str) -> bool:
    """Return whether the broker at the PLAINTEXT `port` is up and belongs to the cluster `cluster_id`."""
    if not is_listening(port):
        return False
    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0, "socket.timeout.ms": 2000})
    try:
        # `describe_cluster` (librdkafka 2.16) aborts the process while the controller has fenced the broker.
        cluster = client.list_topics(timeout=2)
    except KafkaException:
        return False
    return str(cluster.cluster_id) == cluster_id and bool(cluster.brokers)
