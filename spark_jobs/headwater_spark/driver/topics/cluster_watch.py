"""Watch whether the cluster can be read, and whether a topic was created, deleted or replaced.

This has a thread of its own. What else the client requests of brokers waits up to half a minute for an answer
while none answers, one request after the other.
"""

import time
from collections.abc import Callable
from threading import Event
from typing import Protocol

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.model.problems import ProblemsError
from headwater_spark.driver.captured_failures import failure_reason

_log = structlog.get_logger(__name__)
_INTERVAL_SECONDS = 1.0
_OUTAGE_SECONDS = 5.0
"""How long requests must have failed: a broker that restarts, or a closed connection, is no outage."""


class WatchedTopics(Protocol):
    def has_changed(self) -> bool:
        """Return whether a topic was created, deleted or replaced; raises `ProblemsError`."""
        ...


@attrs.define(kw_only=True, eq=False)
class ClusterWatch:
    """One thread calls `run`, any thread reads `problem`, one other thread takes the changes."""

    _topics: WatchedTopics
    _clock: Callable[[], float] = time.monotonic
    problem: str = attrs.field(default="", init=False)
    """Why the cluster has not been readable for some seconds; empty if it is."""
    _failing_since: float | None = attrs.field(default=None, init=False)
    _changed: Event = attrs.field(factory=Event, init=False)

    def run(self, stopping: Event) -> None:
        """Observe the cluster until `stopping` is set."""
        while not stopping.wait(_INTERVAL_SECONDS):
            self.observe()

    def observe(self) -> None:
        """Read the topics once. Log when brokers stop answering and when they answer again."""
        begin = self._clock()
        try:
            has_changed = self._topics.has_changed()
        except (ProblemsError, KafkaException) as error:
            self._note_failure(begin, failure_reason(error))
            return
        if self.problem:
            _log.info("cluster readable again")
        self.problem, self._failing_since = "", None
        if has_changed:
            self._changed.set()

    def _note_failure(self, begin: float, reason: str) -> None:
        """Note that a request that was sent at `begin` has failed."""
        if self._failing_since is None:
            self._failing_since = begin
        if self._clock() - self._failing_since < _OUTAGE_SECONDS:
            return
        if not self.problem:
            _log.warning("cluster not readable, retrying", reason=reason)
        self.problem = reason

    def take_change(self) -> bool:
        """Return whether a topic has changed since the last call."""
        if not self._changed.is_set():
            return False
        self._changed.clear()
        return True
