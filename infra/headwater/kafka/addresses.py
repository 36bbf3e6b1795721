"""Connections to addresses of brokers, with TLS."""

import os
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import IO

from headwater.kafka.connection_settings import ConnectionSettings


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the context; raises `OSError`, `ValueError` for certificates and keys that OpenSSL rejects."""
    context = ssl.create_default_context(cadata=settings.ca)
    # Python 3.13 rejects certificates of private authorities that librdkafka and Java accept.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = settings.verify_hostname and not settings.skip_tls_verify
    if settings.skip_tls_verify:
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate is not None and settings.key is not None:
        _load_identity(context, f"{settings.key}\n{settings.certificate}", settings.key_password)
    return context


def _load_identity(context: ssl.SSLContext, identity: str, password: str | None) -> None:
    """Load a key and its certificates. OpenSSL reads them from a file: this one has no name."""
    with _unnamed_file() as file:
        file.write(identity.encode())
        file.flush()
        file.seek(0)
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/dev/fd/{file.fileno()}", password=password or "")


def _unnamed_file() -> IO[bytes]:
    """Return a file that no other process finds, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("identity"), "w+b")
    return TemporaryFile()


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
