"""Lets tasks commit the offsets of idle partitions again, before brokers forget them.

The consumer group of an application has no members: its tasks commit by themselves. Brokers forget an offset
of such a group `offsets.retention.minutes` (7 days by default) after its last commit, also while the
application runs. Without it, the next start would read the partition again from its first record, and count
its records twice. Its metadata, such as the lineage of the state, would be lost, too. Kafka Streams has
members in its group, whose offsets are kept.

Tasks commit, not the driver: with exactly once, brokers refuse the commit of a task that was replaced.
"""

import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Final, Protocol

import structlog

from headwater_spark.driver.captured_failures import failure_reason

_log = structlog.get_logger(__name__)
FIRST_SECONDS: Final = 600.0
"""After the start. A client that is restarted every few hours has to renew offsets, too."""
INTERVAL_SECONDS: Final = 3600.0
"""Far less than any retention in use, so that many failures in a row do no harm."""
_RETRY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 5.0


class RenewedQuery(Protocol):
    """A query of the application (`SubtopologyQuery`)."""

    def renew_offsets(self) -> bool:
        """Let tasks commit the offsets of idle partitions again; return False if that has to be repeated."""
        ...


class OffsetRenewal:
    """Renews the offsets of each query, ten minutes after the start and then every hour.

    Args:
        queries: Name → query; queries are added when the application starts.
        is_readable: Returns whether brokers answer.
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        queries: Mapping[str, RenewedQuery],
        is_readable: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queries, self._is_readable, self._clock = queries, is_readable, clock
        self._due: dict[str, float] = {}
        self._started = clock()

    def run(self, stopping: Event) -> None:
        """Renew offsets until `stopping` is set."""
        while not stopping.wait(_POLL_SECONDS):
            self.renew_due(stopping)

    def renew_due(self, stopping: Event) -> None:
        """Renew the offsets of the queries for which it is time, until `stopping` is set."""
        for name, query in tuple(self._queries.items()):
            if stopping.is_set():
                return
            if self._clock() < self._due.get(name, self._started + FIRST_SECONDS):
                continue
            is_renewed = self._is_readable() and self._renew(name, query)
            self._due[name] = self._clock() + (INTERVAL_SECONDS if is_renewed else _RETRY_SECONDS)

    def _renew(self, name: str, query: RenewedQuery) -> bool:
        """Return whether the offsets are renewed: nothing is lost if not, as brokers keep them for days."""
        try:
            return query.renew_offsets()
        except Exception as error:  # noqa: BLE001 - of a task, Spark or Kafka; the next batch reports it, too
            _log.warning("offsets not renewed, retrying", subtopology=name, reason=failure_reason(error))
            return False
