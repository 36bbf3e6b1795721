"""The topics of finished test modules on the brokers that tests share: they are deleted.

Plans, agents and applications read all topics of their cluster, many of them every second. Each answer with
800 topics takes a broker 25 ms of CPU time.
"""

import re
from contextlib import suppress
from uuid import uuid4

import attrs
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_SECONDS = 60.0
_DIGITS = 10
_MARK = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")


@attrs.frozen
class SharedTopics:
    """`marks` are the parts of names that a worker has chosen, `brokers` the shared brokers of its tests."""

    marks: set[str] = attrs.field(factory=set)
    brokers: set[str] = attrs.field(factory=set)

    def unique_name(self, prefix: str) -> str:
        """Return a name that no other test of the run uses."""
        mark = uuid4().hex[:_DIGITS]
        self.marks.add(mark)
        return f"{prefix}-{mark}"

    def delete(self) -> None:
        """Delete the topics with the names so far; what a broker refuses or no longer has is skipped."""
        marks = set(self.marks)
        self.marks.clear()
        if marks:
            for bootstrap_servers in self.brokers:
                with suppress(KafkaException):
                    _delete_topics(bootstrap_servers, marks)


def _delete_topics(bootstrap_servers: str, marks: set[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    topics = admin.list_topics(timeout=_SECONDS).topics
    if found := [name for name in topics if not marks.isdisjoint(_MARK.findall(name))]:
        for deleted in admin.delete_topics(found, request_timeout=_SECONDS).values():
            with suppress(KafkaException):
                deleted.result()
