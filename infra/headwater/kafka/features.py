"""The enabled features of a cluster, such as `streams.version`, which librdkafka does not return.

Brokers answer the request ApiVersions before a client logs in, so it needs no credentials.
"""

from collections.abc import Mapping

from headwater.kafka.addresses import open_connection
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.wire import ResponseReader, receive_response

_REQUEST = bytes.fromhex(
    "0012000300000001"  # ApiVersions, version 3, correlation id
    "0009" + b"headwater".hex() + "00"  # client id; no tagged fields
    "0a" + b"headwater".hex() + "02" + b"1".hex() + "00"  # name and version of the software
)  # fmt: skip
_FINALIZED_FEATURES = 2
"""The tag of the field in the response."""


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
                return _features(receive_response(connected)) or None
        except (OSError, ValueError, IndexError):
            continue
    return None


def _features(response: bytes) -> dict[str, int]:
    """Return the finalized features in a response of version 3."""
    reader = ResponseReader(response)
    if reader.number(2) != 0:
        return {}
    for _ in range(reader.unsigned() - 1):  # the versions of each request
        reader.skip(6)
        reader.tagged_fields()
    reader.skip(4)  # throttle time
    found = reader.tagged_fields().get(_FINALIZED_FEATURES)
    if found is None:
        return {}
    features, levels = ResponseReader(found), {}
    for _ in range(features.unsigned() - 1):
        name = features.take(features.unsigned() - 1).decode()
        levels[name] = features.number(2)
        features.skip(2)
        features.tagged_fields()
    return levels
