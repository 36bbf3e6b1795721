"""Groups of a real broker with a member each, as the simulated cluster has them."""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType

import attrs
from confluent_kafka import Consumer, TopicPartition

from headwater.toolchain.broker.readiness import until
from tests.groups import describe_group

_SECONDS = 90
_POLL_SECONDS = 0.05
_SETTINGS: Mapping[str, object] = MappingProxyType(
    {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 500,
        "log_level": 0,
    }
)


@attrs.define
class Members:
    """A consumer for each group. A thread polls them: members that do not answer leave rebalances open."""

    servers: str
    _consumers: dict[str, Consumer] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _is_over: threading.Event = attrs.field(factory=threading.Event)

    def join(self, group: str, topic: str) -> None:
        """Let a member of the group read the topic, and nothing else."""
        self.leave(group)
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group, **_SETTINGS})
        consumer.subscribe([topic])
        with self._lock:
            self._consumers[group] = consumer
        self.wait_until_stable()

    def leave(self, group: str) -> None:
        with self._lock:
            consumer = self._consumers.pop(group, None)
            if consumer is not None:
                consumer.close()

    def commit(self, group: str, topic: str) -> bool:
        """Commit an offset as the member of the group; return whether the group has one."""
        with self._lock:
            consumer = self._consumers.get(group)
            if consumer is not None:
                consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        return consumer is not None

    def wait_until_stable(self) -> None:
        """Wait until each member is described with what it reads: in a rebalance it is described without."""
        assert until(lambda: all(map(self._is_stable, self._groups())), _SECONDS)

    def _groups(self) -> Collection[str]:
        with self._lock:
            return tuple(self._consumers)

    def _is_stable(self, group: str) -> bool:
        return describe_group(self.servers, group).state == "Stable"

    def _poll(self) -> None:
        while not self._is_over.wait(_POLL_SECONDS):
            with self._lock:
                for consumer in self._consumers.values():
                    consumer.poll(0)

    @classmethod
    @contextmanager
    def polled(cls, servers: str) -> "Iterator[Members]":
        """Return no members yet; at the end all leave."""
        members = cls(servers)
        thread = threading.Thread(target=partial(members._poll), daemon=True)
        thread.start()
        try:
            yield members
        finally:
            members._is_over.set()
            thread.join()
            for group in members._groups():
                members.leave(group)
