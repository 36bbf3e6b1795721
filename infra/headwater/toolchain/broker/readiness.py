"""Check whether a broker can be used: it answers metadata requests and lists itself as alive."""

import socket
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headwater.toolchain.broker.ports import HOST

_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.1
_PART_OF_WAIT = 1 / 20

T = TypeVar("T")


def until(condition: Callable[[], T], timeout: float) -> T:
    """Return the first true result of `condition`, or its last one when `timeout` seconds have passed.

    The pauses become longer: each check takes CPU time of the processes that have to make it true.
    """
    start = time.monotonic()
    while not (result := condition()) and (waited := time.monotonic() - start) < timeout:
        time.sleep(min(max(_PAUSE_SECONDS, waited * _PART_OF_WAIT), _LONGEST_PAUSE_SECONDS))
    return result


def listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def serves(port: int, cluster_id: str) -> bool:
    """Return whether the broker at the PLAINTEXT `port` is up and belongs to the cluster `cluster_id`."""
    if not listens(port):
        return False
    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0, "socket.timeout.ms": 2000})
    try:
        # `describe_cluster` (librdkafka 2.16) aborts the process while the controller has fenced the broker.
        cluster = client.list_topics(timeout=2)
    except KafkaException:
        return False
    return str(cluster.cluster_id) == cluster_id and bool(cluster.brokers)
