"""Workloads of the compared programs: a topology and records with a distribution of keys."""

from enum import Enum
from typing import Literal

import attrs

PARTITIONS = 2
CORES = 4
"""Number of tasks that Spark runs in parallel: those of two queries."""
_SMALL_PART = 10
"""The small run has a tenth of the large one's records."""
_HOT_OF_FIVE = 4
_REPEATED = 10
_MILLION = 1_000_000
_SPREAD = 2_654_435_761
"""A prime near 2^32 divided by the golden ratio: multiples of it are far apart."""


Operator = Literal[
    "map", "count", "reduce", "tumbling", "hopping", "sliding", "session", "stream-stream join",
    "stream-table join", "table-table join", "foreign-key join", "suppress", "eight operators",
    "aggregate to JSON", "processor with a store", "stream-global table join",
]  # fmt: skip
"""What a chain does; `stateful.py` has the steps of all but `map` and `count`."""
TWO_SOURCES: frozenset[str] = frozenset(
    {"stream-stream join", "stream-table join", "table-table join", "foreign-key join", "eight operators"}
)
"""The operators that read a second topic, with as many records as the first one."""
WITH_GLOBAL_TABLE: frozenset[str] = frozenset({"stream-global table join"})
"""The operators that read a second topic into each instance before they start; its records do not count."""


class Keys(Enum):
    """The distribution of keys; the value is printed."""

    FEW = "10 keys"
    THOUSAND = "1,000 keys"
    MILLION = "1 million keys"
    UNIQUE = "9 of 10 keys unique"
    SKEWED = "80 % one key"

    def key(self, number: int) -> bytes:
        """Return the key of record `number`."""
        match self:
            case Keys.FEW:
                chosen = number % 10
            case Keys.THOUSAND:
                chosen = number % 1_000
            case Keys.MILLION:
                chosen = number * _SPREAD % 2**32 % _MILLION
            case Keys.UNIQUE:
                chosen = number if number % _REPEATED else number // 2
            case Keys.SKEWED:
                chosen = 0 if number % 5 < _HOT_OF_FIVE else number % 1_000
        return b"key-%d" % chosen


@attrs.frozen(kw_only=True)
class Workload:
    """`chains` parallel chains of `subtopologies` sub-topologies, which repartition topics connect.

    `share` is the fraction of a full run's records. `of_plain` and `of_streams` are the targets of our rate
    or median latency as a multiple of the other program's, and `p99_of_streams` of the 99th percentile; None
    = no target. Plain PySpark supports neither Kafka transactions nor one update per record, so it does not
    run such workloads. `threads` is `num.stream.threads`, `processors` the declared number; None = not set.
    """

    name: str
    operator: Operator
    keys: Keys = Keys.THOUSAND
    chains: int = 1
    subtopologies: int = 1
    every_update: bool = False
    exactly_once: bool = False
    share: float = 1.0
    rounds: int = 2
    has_plain_peer: bool = True
    of_plain: float | None = None
    of_streams: float | None = None
    p99_of_streams: float | None = None
    threads: int | None = None
    processors: int | None = None

    @property
    def config(self) -> dict[str, str]:
        """Return the Kafka Streams settings of the workload."""
        once = {"processing.guarantee": "exactly_once_v2"} if self.exactly_once else {}
        threads = {} if self.threads is None else {"num.stream.threads": str(self.threads)}
        return once | ({"statestore.cache.max.bytes": "0"} if self.every_update else {}) | threads

    def sizes(self, records: int) -> tuple[int, int]:
        """Return the number of records of the small and the large run, of all sources together."""
        topics = self.chains * self.sources_per_chain
        large = int(records * self.share) // topics * topics
        return large // _SMALL_PART // topics * topics, large

    @property
    def sources_per_chain(self) -> int:
        return 2 if self.operator in TWO_SOURCES else 1


@attrs.frozen
class Chain:
    """The topics of a chain."""

    source: str
    sink: str
    other: str | None = None
    """The second source, of operators in `TWO_SOURCES`."""
    global_table: str | None = None
    """The topic of a global table, of operators in `WITH_GLOBAL_TABLE`. No offset of it is committed."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources whose offsets are committed."""
        return (self.source,) if self.other is None else (self.source, self.other)

    @property
    def topics(self) -> tuple[str, ...]:
        """Return all topics, as `Peer.java` expects them."""
        tables = () if self.global_table is None else (self.global_table,)
        return (*self.sources, *tables, self.sink)


@attrs.frozen
class Job:
    """One run; `id` is the application id. Each of its topics has `partitions` partitions."""

    id: str
    workload: Workload
    chains: tuple[Chain, ...]
    partitions: int = PARTITIONS
