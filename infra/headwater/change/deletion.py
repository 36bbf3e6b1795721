"""Delete topics by their ids (KIP-516): a topic that got the same name since then is never deleted.

librdkafka (2.16) and the provider delete by name only, so this sends the request DeleteTopics itself, over a
connection with the same security settings. It does not know all of them: client certificates and tokens need
the library. For those the topic's id is read right before a deletion by name.
"""

import base64
import hashlib
import hmac
import secrets
import socket
from collections.abc import Callable, Mapping
from struct import pack

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from headwater.change.topics import admin_client
from headwater.kafka import Connection
from headwater.kafka.addresses import open_connection
from headwater.kafka.wire import ResponseReader, receive_response

_SECONDS = 30.0
_DELETE_TOPICS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE = 20, 17, 36
_FIRST_VERSION_WITH_IDS = 6
_NONE, _NOT_CONTROLLER, _UNKNOWN_ID, _UNKNOWN_TOPIC = 0, 41, 100, 3
_HASHES: Mapping[str, Callable[..., "hashlib._Hash"]] = {
    "SCRAM-SHA-256": hashlib.sha256,
    "SCRAM-SHA-512": hashlib.sha512,
}
_CLIENT = b"headwater"


def delete_topics(connection: Connection, ids: Mapping[str, str]) -> Mapping[str, str]:
    """Delete the topics with these ids; `ids` is name → id. Return name → reason for those that remain.

    A topic that no longer exists under its id counts as deleted.

    Raises:
        OSError: No broker answers, or it refuses the user.
    """
    if not _is_supported(connection):
        return _delete_by_name(connection, ids)
    reason: Exception = OSError("no broker is named")
    for server in connection.bootstrap_servers:
        try:
            with open_connection(connection, server, _SECONDS) as connected:
                _authenticate(connected, connection)
                return _delete_by_id(connected, ids)
        except (OSError, ValueError, IndexError) as error:
            reason = error
    raise OSError(f"{reason}")


def _is_supported(connection: Connection) -> bool:
    if connection.certificate is not None:
        return False
    return not connection.uses_sasl or connection.mechanism in ("PLAIN", *_HASHES)


def _delete_by_id(connected: socket.socket, ids: Mapping[str, str]) -> Mapping[str, str]:
    names = {_uuid(id_): name for name, id_ in ids.items()}
    topics = b"".join(b"\x00" + uuid + b"\x00" for uuid in names)
    body = _unsigned(len(names) + 1) + topics + pack(">i", int(_SECONDS * 1000)) + b"\x00"
    _send(connected, _DELETE_TOPICS, _FIRST_VERSION_WITH_IDS, b"\x00" + body)
    reader = ResponseReader(receive_response(connected))
    reader.tagged_fields()
    reader.skip(4)  # throttle time
    remaining = {}
    for _ in range(reader.unsigned() - 1):
        reader.skip(max(0, reader.unsigned() - 1))  # the name, which the user may not see
        uuid, code = reader.take(16), reader.number(2)
        message = reader.take(max(0, reader.unsigned() - 1)).decode()
        reader.tagged_fields()
        if code not in (_NONE, _UNKNOWN_ID, _UNKNOWN_TOPIC):
            remaining[names[uuid]] = f"{KafkaError(code).name()}{f': {message}' if message else ''}"
    return remaining


def _delete_by_name(connection: Connection, ids: Mapping[str, str]) -> Mapping[str, str]:
    admin = admin_client(connection)
    remaining = {}
    for name, id_ in ids.items():
        try:
            found = admin.describe_topics(TopicCollection([name]), request_timeout=_SECONDS)[name].result()
            if str(found.topic_id) == id_:
                admin.delete_topics([name], request_timeout=_SECONDS)[name].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                remaining[name] = error.args[0].str()
    return remaining


def _authenticate(connected: socket.socket, connection: Connection) -> None:
    """Log in as KIP-152 describes: the mechanism, then its messages."""
    if not connection.uses_sasl:
        return
    mechanism = str(connection.mechanism)
    _send(connected, _SASL_HANDSHAKE, 1, _text(mechanism.encode()))
    if ResponseReader(receive_response(connected)).number(2) != _NONE:
        raise OSError(f"the broker does not accept {mechanism}")
    user, password = (connection.username or "").encode(), (connection.password or "").encode()
    if mechanism == "PLAIN":
        _exchange(connected, b"\x00" + user + b"\x00" + password)
    else:
        _scram(connected, _HASHES[mechanism], user, password)


def _scram(
    connected: socket.socket, algorithm: Callable[..., "hashlib._Hash"], user: bytes, password: bytes
) -> None:
    """Log in with SCRAM (RFC 5802, section 3)."""
    escaped = user.replace(b"=", b"=3D").replace(b",", b"=2C")
    nonce = base64.b64encode(secrets.token_bytes(24))
    first = b"n=" + escaped + b",r=" + nonce
    challenge = _exchange(connected, b"n,," + first)
    fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
    if not fields[b"r"].startswith(nonce):
        raise OSError("the broker answers another login")
    salted = hashlib.pbkdf2_hmac(
        algorithm().name, password, base64.b64decode(fields[b"s"]), int(fields[b"i"])
    )
    key = hmac.digest(salted, b"Client Key", algorithm().name)
    last = b"c=biws,r=" + fields[b"r"]
    signed = first + b"," + challenge + b"," + last
    signature = hmac.digest(algorithm(key).digest(), signed, algorithm().name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    answer = _exchange(connected, last + b",p=" + base64.b64encode(proof))
    server = hmac.digest(salted, b"Server Key", algorithm().name)
    expected = hmac.digest(server, signed, algorithm().name)
    if not hmac.compare_digest(answer, b"v=" + base64.b64encode(expected)):
        raise OSError("the broker does not know the password")


def _exchange(connected: socket.socket, message: bytes) -> bytes:
    _send(connected, _SASL_AUTHENTICATE, 1, pack(">i", len(message)) + message)
    reader = ResponseReader(receive_response(connected))
    code, size = reader.number(2), reader.number(2)
    reason = reader.take(max(0, size)).decode()
    if code != _NONE:
        raise OSError(reason or KafkaError(code).name())
    return reader.take(max(0, reader.number(4)))


def _send(connected: socket.socket, key: int, version: int, body: bytes) -> None:
    request = pack(">hhi", key, version, 1) + _text(_CLIENT) + body
    connected.sendall(pack(">i", len(request)) + request)


def _text(value: bytes) -> bytes:
    return pack(">h", len(value)) + value


def _uuid(id_: str) -> bytes:
    """Return the bytes of a topic id: base64 for URLs without padding (`Uuid#toString`)."""
    return base64.urlsafe_b64decode(id_ + "==")


def _unsigned(value: int) -> bytes:
    """Return an UNSIGNED_VARINT."""
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - the highest bit: another byte follows
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*encoded, value])
