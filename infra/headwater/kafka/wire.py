"""Responses of Kafka's protocol as bytes, for the requests that librdkafka does not offer."""

import socket

_MOST_BYTES = 1 << 20


def receive_response(connected: socket.socket) -> bytes:
    """Return a response without its length and correlation id; raises `OSError`, `ValueError`."""
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


class ResponseReader:
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
