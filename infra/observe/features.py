"""The enabled features of a cluster, such as `streams.version`, which librdkafka does not return.

Brokers answer the request ApiVersions before a client logs in, so it needs no credentials.
"""

import socket
from collections.abc import Mapping

from infra.observe.addresses import open_connection
from infra.observe.connection_settings import ConnectionSettings

_REQUEST = bytes.fromhex(
    "0012000300000001"  # ApiVersions, version 3, correlation id
    "0009" + b"headwater".hex() + "00"  # client id; no tagged fields
    "0a" + b"headwater".hex() + "02" + b"1".hex() + "00"  # name and version of the software
)  # fmt: skip
_FINALIZED_FEATURES = 2
"""The tag of the field in the response."""
_MOST_BYTES = 1 << 20


def enabled_features(settings: ConnectionSettings, timeout_seconds: float) -> Mapping[str, int] | None:
    """Return feature → level, as a bootstrap server reports them; None = not known.

    Features that are not enabled are missing. With a client certificate nothing is requested.
    """
    if settings.certificate is not None:
        return None
    for server in settings.bootstrap_servers:
        try:
            with open_connection(settings, server, timeout_seconds) as connected:
                connected.sendall(len(_REQUEST).to_bytes(4, "big") + _REQUEST)
                return _features(_received(connected)) or None
        except (OSError, ValueError, IndexError):
            continue
    return None


def _received(connected: socket.socket) -> bytes:
    """Return the response without its length and correlation id."""
    size = int.from_bytes(_exactly(connected, 4), "big")
    if size > _MOST_BYTES:
        raise ValueError("not a response of Kafka")
    return _exactly(connected, size)[4:]


def _exactly(connected: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connected.recv(size - len(received))
        if not part:
            raise OSError("the connection was closed")
        received += part
    return received


def _features(response: bytes) -> dict[str, int]:
    """Return the finalized features in a response of version 3."""
    reader = _Reader(response)
    if reader.number(2) != 0:
        return {}
    for _ in range(reader.unsigned() - 1):  # the versions of each request
        reader.skip(6)
        reader.tagged_fields()
    reader.skip(4)  # throttle time
    found = reader.tagged_fields().get(_FINALIZED_FEATURES)
    if found is None:
        return {}
    features, levels = _Reader(found), {}
    for _ in range(features.unsigned() - 1):
        name = features.take(features.unsigned() - 1).decode()
        levels[name] = features.number(2)
        features.skip(2)
        features.tagged_fields()
    return levels


class _Reader:
    """Reads the types of Kafka's protocol from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("the response is too short")
        self._at += size
        return taken

    def skip(self, size: int) -> None:
        self.take(size)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def unsigned(self) -> int:
        """Return an UNSIGNED_VARINT."""
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the highest bit: another byte follows
                return value
            shift += 7

    def tagged_fields(self) -> dict[int, bytes]:
        return {self.unsigned(): self.take(self.unsigned()) for _ in range(self.unsigned())}
