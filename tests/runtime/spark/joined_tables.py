"""Tables that are joined by foreign keys, one join after the other, while their rows change (KIP-213)."""

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from headwater_spark.engine.partitioners.hashing import default_partition
from tests.runtime.spark.kafka_topics import Topics

if TYPE_CHECKING:
    from headwater_spark.engine.records import OutputRecord

SOURCES, SINK = ("orders", "customers", "areas"), "enriched"
JOINS = ("named", "placed")
KEYS, CUSTOMERS, AREAS = 60, 12, 4
_EPOCH_MS = 1_700_000_000_000
_HEAD = """
application:
  id: APP
  processors: 2
  config:
    partition.autoscaling.enabled: true
    processing.guarantee: exactly_once_v2
    repartition.purge.interval.ms: 3600000
    statestore.cache.max.bytes: 0
topology:"""
TOPOLOGY = """
  - table: {topic: orders-APP, serdes: TEXTS, as: orders, materialized: orders}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - table: {topic: areas-APP, serdes: TEXTS, as: areas, materialized: areas}
  - leftJoin:
      name: named
      from: orders
      with: customers
      foreignKey: "split(value, '-')[0]"
      value: "concat(left, '+', coalesce(right, '?@?'))"
      materialized: named
      as: named
  - leftJoin:
      name: placed
      from: named
      with: areas
      foreignKey: "split(value, '@')[1]"
      value: "concat(left, '+', coalesce(right, '?'))"
      materialized: placed
  - toStream:
  - to: {topic: enriched-APP, serdes: TEXTS}
""".replace("TEXTS", "{key: string, value: string}")
DOCUMENT = _HEAD + TOPOLOGY


@attrs.define
class JoinedTables:
    """Writes rows of orders, of the customers that they name, and of the areas that customers name."""

    id: str
    topics: Topics
    draw: random.Random
    rows: dict[str, dict[str, str]] = attrs.field(factory=lambda: {name: {} for name in SOURCES})
    _written: int = 0

    def name(self, topic: str) -> str:
        return f"{topic}-{self.id}"

    def create(self, partitions: int) -> None:
        self.topics.create({self.name(each): partitions for each in (*SOURCES, SINK)})

    def expand(self, partitions: int) -> None:
        """Add partitions as `pulumi up` does; the sink keeps its own: so it shows the order of a key."""
        for topic in SOURCES:
            self.topics.expand(self.name(topic), partitions)
        for join in JOINS:
            for kind in ("registration", "response"):
                self.topics.expand(f"{self.id}-{join}-subscription-{kind}-topic", partitions)

    def change(self, number: int) -> None:
        """Write this many rows: new and changed orders, customers, and areas."""
        counts = {name: self.topics.partitions(self.name(name)) for name in SOURCES}
        records: list[OutputRecord] = []
        for _ in range(number):
            self._written += 1
            kind = self.draw.choices(SOURCES, (6, 3, 1))[0]
            match kind:
                case "orders":
                    key, value = f"o{self.draw.randrange(KEYS)}", f"c{self.draw.randrange(CUSTOMERS)}"
                    value = f"{value}-{self._written}"
                case "customers":
                    key = f"c{self.draw.randrange(CUSTOMERS)}"
                    value = f"name {self._written}@r{self.draw.randrange(AREAS)}"
                case _:
                    key, value = f"r{self.draw.randrange(AREAS)}", f"place {self._written}"
            partition = default_partition(key.encode(), counts[kind])
            time_ms = _EPOCH_MS + self._written
            records.append((self.name(kind), partition, key.encode(), value.encode(), time_ms, ()))
            self.rows[kind][key] = value
        self.topics.send(records)

    def expected(self) -> Mapping[str, str]:
        """Return the rows of the result: those of a run without added processors."""
        found = {}
        for key, order in self.rows["orders"].items():
            customer = self.rows["customers"].get(order.partition("-")[0], "?@?")
            area = self.rows["areas"].get(customer.partition("@")[2], "?")
            found[key] = f"{order}+{customer}+{area}"
        return found

    def results(self) -> Mapping[str, str]:
        """Return the last value of each key in the sink."""
        return {
            (record[4] or b"").decode(): (record[5] or b"").decode()
            for record in self.topics.get(self.name(SINK))
        }
