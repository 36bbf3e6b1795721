"""How the records of a batch are passed to a producer."""

from collections.abc import Iterable
from functools import partial

from confluent_kafka import KafkaException, Producer

from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.worker import clients
from spark_jobs.runtime.worker.delivery_reports import DeliveryReports, refused_locally
from spark_jobs.runtime.worker.refusals import EARLIEST_MS

_POLL_EVERY = 10_000
_ANY_PARTITION = -1


class RecordSender:
    """Passes records to a producer; `reports` gets the delivery of each single record."""

    def __init__(self, producer: Producer, reports: DeliveryReports | None) -> None:
        self._producer = producer
        self._reports = reports
        self._partition_counts: dict[str, int] = {}

    def send(self, records: Iterable[OutputRecord]) -> int:
        """Pass `records` on; return their number.

        Raises:
            TaskMigrated: A record's partition does not exist.
            RecordsRefusedError: A record is too large.
            KafkaException: Kafka fails.
        """
        # Positional, as keywords take longer than the rest; `produce_batch` does not accept timestamps.
        produce, poll, counts = self._producer.produce, self._producer.poll, self._partition_counts
        reports = self._reports
        number = 0
        for number, (topic, partition, key, value, timestamp, headers) in enumerate(records, 1):
            written_time = timestamp or EARLIEST_MS
            if partition is None:
                to = _ANY_PARTITION
            else:
                to = partition
                if partition >= counts.get(topic, 0):
                    self._check_partition(topic, partition)
            report = None
            if reports is not None:
                record = (topic, partition, key, value, timestamp, headers)
                report = partial(reports.note_single, record)
            while True:
                try:
                    if headers:
                        produce(topic, value, key, to, report, report, written_time, list(headers))
                    else:
                        produce(topic, value, key, to, report, report, written_time)
                    break
                except BufferError:
                    poll(0.05)
                except KafkaException as error:
                    raise refused_locally(
                        error, (topic, partition, key, value, timestamp, headers)
                    ) from error
            if number % _POLL_EVERY == 0:
                poll(0)
        return number

    def _check_partition(self, topic: str, partition: int) -> None:
        """Fetch the topic's metadata; raise `TaskMigrated` if it has no such partition."""
        found = self._producer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        self._partition_counts[topic] = len(found.partitions)
        if partition >= self._partition_counts[topic]:
            raise TaskMigrated(topic, partition, self._partition_counts[topic])
