"""A foreign-key join on a real broker whose tasks run in this process, without Spark."""

import attrs

from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.serdes.internal_topics import names_processor
from tests.runtime.driver.sparkless import Sparkless

_KEYS, _CUSTOMERS = 12, 5
_DECLARED = "  processors: PROCESSORS\n"
_DOCUMENT = """
application:
  id: APP
  processors: PROCESSORS
  config:
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
topology:
  - table: {topic: orders-APP, serdes: TEXTS, as: orders, materialized: orders}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - leftJoin:
      name: named
      from: orders
      with: customers
      foreignKey: "split(value, '-')[0]"
      value: "concat(left, '+', coalesce(right, 'none'))"
  - toStream:
  - to: {topic: named-APP}
""".replace("TEXTS", "{key: string, value: string}")
_INTERNAL = ("named-subscription-registration-topic", "named-subscription-response-topic")


@attrs.define
class JoiningSparkless(Sparkless):
    """Orders name customers. Before partitions are added, the document does not declare `processors`."""

    orders: dict[bytes, bytes] = attrs.field(factory=dict)
    customers: dict[bytes, bytes] = attrs.field(factory=dict)
    is_declared: bool = False

    def set_up(self, partitions: int) -> None:
        self.topics.create({f"{name}-{self.id}": partitions for name in ("orders", "customers", "named")})

    def text(self, processors: int) -> str:
        text = _DOCUMENT if self.is_declared else _DOCUMENT.replace(_DECLARED, "")
        return text.replace("APP", self.id).replace("PROCESSORS", str(processors))

    def produce(self, rounds: int, keys: int = _KEYS) -> None:
        """Change orders and all customers. Some orders stay as they were before `processors` was declared."""
        keys = keys // 2 if self.is_declared else keys
        orders: list[tuple[bytes, bytes, int]] = []
        customers: list[tuple[bytes, bytes, int]] = []
        for number in range(self._round, self._round + rounds):
            time_ms = self.start_ms + number
            for each in range(keys):
                value = b"c%d-%d" % ((each + number) % _CUSTOMERS, number)
                orders.append((b"k%d" % each, value, time_ms))
            customers += [(b"c%d" % each, b"name %d" % number, time_ms) for each in range(_CUSTOMERS)]
        self.topics.put_by_key(f"orders-{self.id}", orders)
        self.topics.put_by_key(f"customers-{self.id}", customers)
        self.orders |= {key: value for key, value, _ in orders}
        self.customers |= {key: value for key, value, _ in customers}
        self._round += rounds

    def expand(self, partitions: int) -> None:
        """Add partitions as `pulumi up` does with the internal ones; the sink shows the order of a key."""
        self.is_declared = True
        for name in ("orders", "customers"):
            self.topics.expand(f"{name}-{self.id}", partitions)
        for name in _INTERNAL:
            self.topics.expand(f"{self.id}-{name}", partitions)

    def process(self, processors: int) -> None:
        """Process all records; subscriptions and responses are read in later rounds."""
        written: list[int] = []
        while not written or written[-1] != self._messages():
            written.append(self._messages())
            super().process(processors)

    def _messages(self) -> int:
        existing = self.topics.names()
        topics = [f"{self.id}-{each}" for each in _INTERNAL]
        return sum(self.topics.written(topic) for topic in topics if topic in existing)

    def check_moved(self, processors: int) -> None:
        """Check the entries of all stores, then process more records and check the results."""
        for store in ("orders", "customers", "named-subscription-store"):
            for processor, entries in enumerate(self.entries(store)):
                for entry, value in entries.items():
                    is_subscription = store == "named-subscription-store"
                    key = entry[4 : 4 + int.from_bytes(entry[:4], "big")] if is_subscription else entry
                    assert default_partition(key, processors) == processor, store
                    assert not (is_subscription and names_processor(value))
        self.produce(3)
        self.process(processors)
        found = {record[4]: record[5] for record in self.records(f"named-{self.id}")}
        assert found == {
            key: order + b"+" + self.customers[order.partition(b"-")[0]] for key, order in self.orders.items()
        }
