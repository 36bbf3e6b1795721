"""A server that answers some requests as a broker does, with prepared bytes."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import attrs

from headwater.kafka.broker_connection import Message
from headwater.kafka.group_messages import DESCRIBE_CLUSTER
from headwater.kafka.topic_settings import DESCRIBE_CONFIGS
from headwater.kafka.wire import ResponseReader, compact_array, compact_text

_API_VERSIONS = 18


@attrs.define
class PreparedBroker:
    """`described` are the topics of each request; `connections` counts the connections that sent one.

    `cluster` are the addresses of the brokers that it names; by default none.
    """

    address: str
    cluster: Sequence[str] = ()
    described: list[Sequence[str]] = attrs.field(factory=list)
    connections: int = 0


@contextmanager
def prepared_broker(answer: Callable[[Sequence[str]], bytes]) -> Iterator[PreparedBroker]:
    """Start the server; `answer` returns the response to DescribeConfigs, after its tagged fields."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker = PreparedBroker(f"127.0.0.1:{server.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connected, _ = server.accept()
                    threading.Thread(target=_serve, args=(connected, broker, answer), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield broker
        server.shutdown(socket.SHUT_RDWR)


def _serve(
    connected: socket.socket, broker: PreparedBroker, answer: Callable[[Sequence[str]], bytes]
) -> None:
    with connected, connected.makefile("rb") as requests, suppress(OSError):
        is_counted = False
        while size := int.from_bytes(requests.read(4), "big"):
            request = ResponseReader(requests.read(size))
            key, _, correlation = request.number(2), request.number(2), request.take(4)
            if key == DESCRIBE_CONFIGS.key:
                names = _requested(request)
                broker.connections += not is_counted
                is_counted = True
                broker.described.append(names)
                response = b"\x00" + answer(names)
            elif key == DESCRIBE_CLUSTER.key:
                brokers = compact_array(map(_named, broker.cluster))
                response = b"\x00" + b"\x00" * 6 + b"\x00\x02c" + b"\x00" * 4 + brokers + b"\x00" * 5
            elif key == _API_VERSIONS:
                known = compact_array(map(_versions, (DESCRIBE_CONFIGS, DESCRIBE_CLUSTER)))
                response = b"\x00\x00" + known + b"\x00" * 5
            else:  # librdkafka's client connects, too
                return
            connected.sendall((4 + len(response)).to_bytes(4, "big") + correlation + response)


def _versions(message: Message) -> bytes:
    return (
        b"".join(each.to_bytes(2, "big") for each in (message.key, message.lowest, message.highest)) + b"\x00"
    )


def _named(address: str) -> bytes:
    """Return a broker in the answer to DescribeCluster, without a rack."""
    host, _, port = address.rpartition(":")
    return b"\x00" * 4 + compact_text(host) + int(port).to_bytes(4, "big") + b"\x00" * 2


def _requested(request: ResponseReader) -> Sequence[str]:
    request.take(request.number(2))  # client id
    request.tagged_fields()

    def name() -> str:
        request.skip(1)  # type
        found = request.compact_text()
        request.unsigned_varint()  # all settings
        request.tagged_fields()
        return found

    return tuple(request.compact_array(name))
