"""All produced records, and the results that the application of KIP-878's test plan must derive from them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from threading import Lock

import attrs

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.tenants import partition_of

Entry = tuple[str, str, str | None]
"""(source, key, value); a null value deletes."""
ByKey = Mapping[str, Sequence[str]]
_EPOCH_MS = 1_700_000_000_000


@attrs.define
class ProducedRecords:
    """Writes each record to the partition of its key and remembers it; thread-safe."""

    topics: Topics
    application: str
    entries: list[Entry] = attrs.field(factory=list)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def name(self, topic: str) -> str:
        return f"{topic}-{self.application}"

    def put(self, entries: Iterable[Entry]) -> None:
        """Write `entries`, one source and partition after the other, each in order."""
        partitions: dict[tuple[str, int], list[Entry]] = defaultdict(list)
        for entry in entries:
            partitions[entry[0], partition_of(entry[1])].append(entry)
        with self._lock:
            for (source, partition), group in partitions.items():
                start = _EPOCH_MS + len(self.entries)
                self.topics.put(
                    self.name(source),
                    [
                        (key.encode(), None if value is None else value.encode(), start + number)
                        for number, (_, key, value) in enumerate(group)
                    ],
                    partition,
                )
                self.entries += group

    def of(self, source: str) -> list[tuple[str, str | None]]:
        with self._lock:
            return [(key, value) for each, key, value in self.entries if each == source]

    def joined(self) -> ByKey:
        """Return the value of every order joined with its customer's value at that time."""
        customers: dict[str, str | None] = {}
        found: dict[str, list[str]] = defaultdict(list)
        for source, key, value in self.entries:
            if source == "customers":
                customers[key] = value
            elif source == "orders" and customers.get(key) is not None:
                found[key].append(f"{value}+{customers[key]}")
        return found

    def counted(self) -> ByKey:
        """Return the counts, from one to the number of orders, for each region."""
        orders: dict[str, int] = defaultdict(int)
        for _, value in self.of("orders"):
            orders[before_bar(value)] += 1
        return {region: [str(each + 1) for each in range(number)] for region, number in orders.items()}

    def summed(self) -> ByKey:
        clicks: dict[str, list[int]] = defaultdict(list)
        for key, value in self.of("clicks"):
            clicks[key].append(int(value or 0))
        return {
            key: [f"{sum_} on {partition_of(key)}" for sum_ in accumulate(each)]
            for key, each in clicks.items()
        }

    def enriched(self) -> Mapping[str, str]:
        """Return the last version of every purchase joined with the last version of its album."""
        purchases, albums = dict(self.of("purchases")), dict(self.of("albums"))
        pairs = {key: (value, albums.get(before_bar(value))) for key, value in purchases.items() if value}
        return {key: f"{purchase}+{album}" for key, (purchase, album) in pairs.items() if album}

    def possible(self) -> set[tuple[str, str]]:
        """Return (key, value) of all pairs of versions of purchases and albums."""
        albums = defaultdict(set)
        for key, album in self.of("albums"):
            albums[key].add(album)
        return {
            (key, f"{purchase}+{album}")
            for key, purchase in self.of("purchases")
            for album in albums[before_bar(purchase)]
        }


def before_bar(value: str | None) -> str:
    """Return the key in front of the first bar."""
    return (value or "").partition("|")[0]


def round_of(number: int, tenants: int, albums: int) -> list[Entry]:
    """Return records of the first `tenants` tenants that refer to each other's keys and to all albums."""
    keys = [(tenant, each) for tenant in range(tenants) for each in range(2)]
    titles = [f"t{tenant}:a{each}" for tenant in range(albums) for each in range(2)]
    return [
        *(("albums", title, f"title {number}") for title in titles[number % 2 :: 2]),
        *(("orders", f"t{t}:c{each}", f"t{(t + number) % tenants}:r{each}|{number}") for t, each in keys),
        *(
            ("purchases", f"t{t}:p{each}", f"{titles[(2 * t + each + number) % len(titles)]}|{number}")
            for t, each in keys
        ),
        *(("clicks", f"t{t}:u{each}", str(number + each)) for t, each in keys),
    ]
