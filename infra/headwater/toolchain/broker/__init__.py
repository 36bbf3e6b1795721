"""A real Kafka broker on this machine: one KRaft process that is broker and controller at once."""

from headwater.toolchain.broker.process import Broker
from headwater.toolchain.broker.settings import SaslUser, Settings, Tls

__all__ = ["Broker", "SaslUser", "Settings", "Tls"]
