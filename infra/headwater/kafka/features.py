"""The enabled features of a cluster, such as `streams.version`, which librdkafka does not return.

Brokers answer the request ApiVersions before a client logs in, so it needs no credentials.
"""

from collections.abc import Mapping

from headwater.kafka.broker_connection import BrokerConnection
from headwater.kafka.connection_settings import ConnectionSettings


def enabled_features(settings: ConnectionSettings, timeout_seconds: float) -> Mapping[str, int] | None:
    """Return feature → level, as a bootstrap server reports them; None = not known.

    Features that are not enabled are missing.
    """
    for server in settings.bootstrap_servers:
        try:
            with BrokerConnection(settings, server, timeout_seconds, login=None) as connected:
                return connected.features or None
        except OSError:
            continue
    return None
