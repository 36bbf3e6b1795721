"""A real Kafka broker on this machine: one KRaft process that is broker and controller at once."""

from headwater.toolchain.broker.launch import SaslUser, Settings, Tls
from headwater.toolchain.broker.process import Broker

__all__ = ["Broker", "SaslUser", "Settings", "Tls"]
