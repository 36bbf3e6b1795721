"""Requests and responses of Kafka's protocol as bytes, for requests that librdkafka does not send."""

import base64
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_MOST_BYTES = 100 << 20
"""The limit that brokers have for requests by default (`socket.request.max.bytes`)."""
_VARINT_BITS = 35
NO_TAGS = b"\x00"
"""The end of a structure without tagged fields (KIP-482)."""


class LateResponseError(TimeoutError):
    """A broker that is connected has sent no response, or not all of it, in time."""


def receive_response(
    connected: socket.socket, correlation: int, begin_by: float, end_by: float, pause_seconds: float
) -> bytes:
    """Return the response to a request without length and id; raises `OSError`, `ValueError`.

    Its length has to come until `begin_by`, all of it until `end_by`, as `time.monotonic`. It may pause for
    `pause_seconds`.
    """
    size = int.from_bytes(_receive_exactly(connected, 4, begin_by, pause_seconds), "big")
    if not 4 <= size <= _MOST_BYTES:  # noqa: PLR2004 - the bytes of the correlation id
        raise ValueError("not a response of Kafka")
    response = _receive_exactly(connected, size, end_by, pause_seconds)
    if int.from_bytes(response[:4], "big") != correlation:
        raise ValueError("the response belongs to another request")
    return response[4:]


def _receive_exactly(connected: socket.socket, size: int, deadline: float, pause_seconds: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise LateResponseError("the response is not complete")
        connected.settimeout(min(remaining, pause_seconds))  # of each `recv`: a broker may send byte by byte
        try:
            part = connected.recv(min(size - len(received), 1 << 20))
        except TimeoutError:
            raise LateResponseError("the broker has stopped sending its response") from None
        if not part:
            raise OSError("the connection was closed")
        received += part
    return bytes(received)


def unsigned_varint(value: int) -> bytes:
    """Return an UNSIGNED_VARINT."""
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - the highest bit: another byte follows
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def compact_text(value: str) -> bytes:
    """Return a COMPACT_STRING."""
    encoded = value.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def compact_array(items: Iterable[bytes]) -> bytes:
    """Return a COMPACT_ARRAY of encoded items."""
    encoded = tuple(items)
    return unsigned_varint(len(encoded) + 1) + b"".join(encoded)


def topic_id_bytes(id_: str) -> bytes:
    """Return the bytes of a topic id: base64 for URLs without padding (`Uuid#toString`)."""
    return base64.urlsafe_b64decode(id_ + "==")


class ResponseReader:
    """Reads the types of Kafka's protocol from bytes; raises `ValueError` for bytes that are none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if size < 0 or len(taken) < size:
            raise ValueError("the response is too short")
        self._at += size
        return taken

    def skip(self, size: int) -> None:
        self.take(size)

    def take_known(self, known: Iterable[bytes]) -> bytes | None:
        """Take the `known` bytes that are next and return them; None = none of them are next."""
        data, at = self._data, self._at
        for each in known:
            if data.startswith(each, at):
                self._at = at + len(each)
                return each
        return None

    def read_with_bytes(self, read: Callable[[], T]) -> tuple[bytes, T]:
        """Return the bytes that `read` takes, and what it returns."""
        begin = self._at
        found = read()
        return self._data[begin : self._at], found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def unsigned_varint(self) -> int:
        """Return an UNSIGNED_VARINT."""
        value = shift = 0
        while shift < _VARINT_BITS:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the highest bit: another byte follows
                return value
            shift += 7
        raise ValueError("the response contains a number that is too long")

    def compact_bytes(self) -> bytes:
        """Return COMPACT_BYTES; none are empty."""
        return self.take(max(0, self.unsigned_varint() - 1))

    def compact_text(self) -> str:
        """Return a COMPACT_STRING or COMPACT_NULLABLE_STRING; null is empty."""
        return self.compact_bytes().decode()

    def compact_nullable_text(self) -> str | None:
        """Return a COMPACT_NULLABLE_STRING."""
        size = self.unsigned_varint()
        return self.take(size - 1).decode() if size else None

    def compact_array(self, read: Callable[[], T]) -> Iterator[T]:
        """Yield the items of a COMPACT_ARRAY, each read by `read`; null is empty."""
        for _ in range(self.unsigned_varint() - 1):
            yield read()

    def tagged_fields(self) -> dict[int, bytes]:
        return {
            self.unsigned_varint(): self.take(self.unsigned_varint()) for _ in range(self.unsigned_varint())
        }
