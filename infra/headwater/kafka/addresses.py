"""Connections to single addresses, without the Kafka protocol: whether one answers, and its certificate."""

import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.tls import tls_context

_PARALLEL = 32
_DAY_SECONDS = 86_400


def open_connection(settings: ConnectionSettings, address: str, timeout_seconds: float) -> socket.socket:
    """Connect to `address` (host:port), with TLS if the settings use it; raises `OSError`, `ValueError`."""
    host, port = _host_and_port(address)
    plain = socket.create_connection((host, port), timeout_seconds)
    if not settings.uses_tls:
        return plain
    try:
        return tls_context(settings).wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def unreachable(addresses: Iterable[str], timeout_seconds: float) -> Mapping[str, str]:
    """Return address → reason for those that accept no TCP connection; tries all at the same time."""

    def reason(address: str) -> str:
        try:
            with socket.create_connection(_host_and_port(address), timeout_seconds):
                return ""
        except (OSError, ValueError) as error:
            return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)

    unique = sorted(set(addresses))
    with ThreadPoolExecutor(_PARALLEL) as threads:
        reasons = dict(zip(unique, threads.map(reason, unique), strict=True))
    return {address: why for address, why in reasons.items() if why}


def certificate_days(settings: ConnectionSettings, address: str, timeout_seconds: float) -> int | None:
    """Return for how many whole days the certificate at `address` is valid; None = not known."""
    if not settings.uses_tls or settings.skip_tls_verify:
        return None
    try:
        with open_connection(settings, address, timeout_seconds) as connected:
            certificate = connected.getpeercert() if isinstance(connected, ssl.SSLSocket) else None
    except (OSError, ValueError):
        return None
    end = (certificate or {}).get("notAfter")
    return (
        int((ssl.cert_time_to_seconds(end) - time.time()) // _DAY_SECONDS) if isinstance(end, str) else None
    )


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
