"""A real Kafka broker on this machine: one KRaft process that is broker and controller at once."""

from toolchain.broker.process import Broker
from toolchain.broker.settings import SaslUser, Settings, Tls

__all__ = ["Broker", "SaslUser", "Settings", "Tls"]
