"""Checks, with at least once, that no outdated worker has replaced the commits of the present ones."""

from collections.abc import Mapping
from threading import Event

import structlog
from confluent_kafka import KafkaException

from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.queries.query import SubtopologyQuery
from headwater_spark.worker.state_proof import PROOF_SECONDS, boot_seconds

_log = structlog.get_logger(__name__)
_SECONDS = 5.0


class CommitCheck:
    """Compares the committed offsets every five seconds, while no task runs, and repairs them.

    Only a client does so that was the active one for certain just now. It does not check that itself: the
    thread that renews the record finds other clients, and reports them.
    """

    def __init__(
        self, queries: Mapping[str, SubtopologyQuery], offsets: GroupOffsets, client: ActiveClient
    ) -> None:
        self._queries, self._offsets, self._client = queries, offsets, client

    def run(self, stopping: Event) -> None:
        """Check until `stopping` is set."""
        while not stopping.wait(_SECONDS):
            try:
                self.check()
            except KafkaException as error:  # no broker answers: others report it
                _log.debug("committed offsets not checked", reason=failure_reason(error))

    def check(self) -> None:
        """Check once; raises `KafkaException`."""
        for name, query in tuple(self._queries.items()):
            if boot_seconds() - self._client.proved_at > PROOF_SECONDS:
                return
            if repaired := query.repair_commits(self._offsets):
                _log.warning(
                    "offsets repaired: an outdated worker had committed",
                    subtopology=name,
                    partitions=repaired,
                )
