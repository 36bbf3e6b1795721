"""When a broker can be used: it answers metadata requests and lists itself as alive."""

import socket
import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from toolchain.broker.ports import HOST

_PAUSE_SECONDS = 0.02


def until(condition: Callable[[], bool], timeout: float) -> bool:
    """Return whether `condition` came true within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def serves(port: int, cluster_id: str) -> bool:
    """Tell whether the broker at the PLAINTEXT `port` is up and belongs to the cluster `cluster_id`."""
    if not listens(port):
        return False
    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0, "socket.timeout.ms": 2000})
    try:
        cluster = client.describe_cluster(request_timeout=2).result()
    except KafkaException:
        return False
    return bool(cluster.cluster_id == cluster_id and cluster.nodes)
