"""Repartition topics are emptied behind their readers (`TaskManager#maybePurgeCommittedRecords`)."""

from collections.abc import Collection, Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.observe import Connection
from spark_jobs.runtime.worker import clients


class Purge:
    """Deletes what was processed. A refusal is no failure: the next turn tries again.

    Tell it what a consumer has just been told: librdkafka's admin client (2.16) has aborted processes whose
    brokers went away while it looked for partitions' leaders. What is left are brokers that go away between
    the two; 8,000 such requests to a broker that was killed, paused and started again did no harm. To ask
    for a topic's metadata first would narrow that, but may make a topic that was deleted.
    """

    def __init__(self, connection: Connection) -> None:
        self._admin = AdminClient(clients.settings(connection), logger=clients.client_logger())
        self._purged: dict[tuple[str, int], int] = {}

    def forget(self, topics: Collection[str]) -> None:
        """Take nothing of `topics` for purged."""
        self._purged = {place: offset for place, offset in self._purged.items() if place[0] not in topics}

    def purge(self, committed: Mapping[tuple[str, int], int]) -> int:
        """Delete the records of repartition topics below `committed`; return in how many partitions."""
        due = {place: offset for place, offset in committed.items() if offset > self._purged.get(place, 0)}
        if not due:
            return 0
        futures = self._admin.delete_records(
            [TopicPartition(*place, offset) for place, offset in due.items()],
            request_timeout=clients.REQUEST_SECONDS,
        )
        done = 0
        for asked, future in futures.items():
            try:
                future.result()
            except KafkaException:
                continue
            place = asked.topic, asked.partition
            self._purged[place] = due[place]
            done += 1
        return done
