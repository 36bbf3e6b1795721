"""Topics of the runs: sources that are written once, and a sink for each run.

No topic is deleted before the end: Spark's cached producers would request its metadata again and again.
"""

import time

import attrs
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from tests.bench.runtime.workloads import PARTITIONS, WITH_GLOBAL_TABLE, Chain, Job, Keys, Workload

_AT_ONCE = 50_000
_ROWS_OF_GLOBAL_TABLE = 1_000
_SECONDS = 60


@attrs.define
class Created:
    """What was created so far, as values that the next process continues with.

    `filled` are the filled sources by keys, records, number and role; `begins` the event time of their first
    records; `number` is the next number of a run or source.
    """

    filled: dict[tuple[Keys, int, int, str], str] = attrs.field(factory=dict)
    begins: dict[tuple[Keys, int], int] = attrs.field(factory=dict)
    number: int = 0

    def next_number(self) -> int:
        """Return a number that no other topic or application has."""
        self.number += 1
        return self.number - 1


class Topics:
    """Creates topics with `partitions` partitions; `created`: the topics of earlier processes."""

    def __init__(
        self,
        servers: str,
        prefix: str = "bench",
        partitions: int = PARTITIONS,
        created: Created | None = None,
    ) -> None:
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self.servers = servers
        self.created = Created() if created is None else created
        self._prefix = prefix
        self._partitions = partitions

    def job(self, program: str, workload: Workload, records: int | None) -> Job:
        """Return a new run over sources with `records` records; None = over its own empty sources."""
        id_ = f"{self._prefix}-{self.created.next_number()}-{program}"
        each = None if records is None else records // workload.chains // workload.sources_per_chain
        chains = []
        for number in range(workload.chains):
            source = self._source(workload.keys, each, number, f"{id_}-in")
            other = (
                self._source(workload.keys, each, number, f"{id_}-other", "other")
                if workload.sources_per_chain > 1
                else None
            )
            table = (
                self._source(workload.keys, _ROWS_OF_GLOBAL_TABLE, number, f"{id_}-table", "table")
                if workload.operator in WITH_GLOBAL_TABLE
                else None
            )
            chains.append(Chain(source, f"{id_}-out-{number}", other, table))
            self.create(chains[-1].sink)
        return Job(id_, workload, tuple(chains), self._partitions)

    def _source(self, keys: Keys, records: int | None, number: int, own: str, what: str = "in") -> str:
        """Return a filled topic, or, without a number of records, an empty one named after `own`."""
        if records is None:
            self.create(f"{own}-{number}")
            return f"{own}-{number}"
        filled = keys, records, number, what
        if filled not in self.created.filled:
            # A topic that could not be filled is not used again.
            topic = f"{self._prefix}-{what}-{keys.name.lower()}-{records}-{self.created.next_number()}"
            self.create(topic)
            begin = self.created.begins.setdefault((keys, records), int(time.time() * 1000) - records)
            # A row of a table is older than the record that is joined with it, however long writing takes.
            fill(self.servers, topic, records, keys, begin - (what != "in"))
            self.created.filled[filled] = topic
        return self.created.filled[filled]

    def create(self, topic: str) -> None:
        """Create an empty topic."""
        new = NewTopic(topic, num_partitions=self._partitions, replication_factor=1)
        self._admin.create_topics([new])[topic].result()


def fill(servers: str, topic: str, records: int, keys: Keys, begin: int) -> None:
    """Write records with numbered values, one per millisecond of event time from `begin` on."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 2 * _AT_ONCE,
        }
    )
    for first in range(0, records, _AT_ONCE):
        last = min(first + _AT_ONCE, records)
        for at in range(first, last):  # batches of the client have no timestamps
            producer.produce(topic, b"value-%d" % at, keys.key(at), timestamp=begin + at)
        if producer.flush(_SECONDS):
            raise RuntimeError(f"the broker did not accept the records of {topic}")
