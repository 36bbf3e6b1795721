"""Watch whether the cluster can be read, and whether a topic was created, deleted or replaced.

This has a thread of its own. What else the client requests of brokers waits up to half a minute for an answer
while none answers, one request after the other.
"""

from threading import Event
from typing import Protocol

import attrs
import structlog
from confluent_kafka import KafkaException

from infra.model.problems import ProblemsError
from spark_jobs.runtime.driver.captured_failures import failure_reason

_log = structlog.get_logger(__name__)
_INTERVAL_SECONDS = 1.0


class WatchedTopics(Protocol):
    def has_changed(self) -> bool:
        """Return whether a topic was created, deleted or replaced; raises `ProblemsError`."""
        ...


@attrs.define(kw_only=True, eq=False)
class ClusterWatch:
    """One thread calls `run`, any thread reads `problem`, one other thread takes the changes."""

    _topics: WatchedTopics
    _interval_seconds: float = _INTERVAL_SECONDS
    problem: str = attrs.field(default="", init=False)
    """Why the last attempt to read the cluster has failed; empty if it has not."""
    _changed: Event = attrs.field(factory=Event, init=False)

    def run(self, stopping: Event) -> None:
        """Observe the cluster until `stopping` is set."""
        while not stopping.wait(self._interval_seconds):
            self.observe()

    def observe(self) -> None:
        """Read the topics once. Log when brokers stop answering and when they answer again."""
        try:
            has_changed = self._topics.has_changed()
        except (ProblemsError, KafkaException) as error:
            reason = failure_reason(error)
            if not self.problem:
                _log.warning("cluster not readable, retrying", reason=reason)
            self.problem = reason
            return
        if self.problem:
            _log.info("cluster readable again")
        self.problem = ""
        if has_changed:
            self._changed.set()

    def take_change(self) -> bool:
        """Return whether a topic has changed since the last call."""
        if not self._changed.is_set():
            return False
        self._changed.clear()
        return True
