"""What is run by every side: a topology, over records with keys of some distribution."""

from enum import Enum
from typing import Literal

import attrs

PARTITIONS = 2
CORES = 4
"""Tasks that Spark runs at a time: those of two queries."""
_SMALL_PART = 10
"""The small run has a tenth of the large one's records."""
_HOT_OF_FIVE = 4
_REPEATED = 10


class Keys(Enum):
    """How keys are distributed; the value is how people call it."""

    FEW = "10 keys"
    THOUSAND = "1,000 keys"
    UNIQUE = "9 of 10 keys unique"
    SKEWED = "80 % one key"

    def key(self, number: int) -> bytes:
        """Return the key of record `number`."""
        match self:
            case Keys.FEW:
                chosen = number % 10
            case Keys.THOUSAND:
                chosen = number % 1_000
            case Keys.UNIQUE:
                chosen = number if number % _REPEATED else number // 2
            case Keys.SKEWED:
                chosen = 0 if number % 5 < _HOT_OF_FIVE else number % 1_000
        return b"key-%d" % chosen


@attrs.frozen(kw_only=True)
class Workload:
    """`lanes` chains beside each other, each of `hops` sub-topologies joined by repartition topics.

    `share` is that of the records of a whole run. `of_plain` and `of_streams` are what our rate is to be as a
    multiple of the other side's, None where nothing is promised. Plain PySpark knows neither transactions of
    Kafka nor an update a record: it has no peer of those.
    `within` is what a single record's median time in seconds is to be.
    """

    name: str
    operator: Literal["map", "count"]
    keys: Keys = Keys.THOUSAND
    lanes: int = 1
    hops: int = 1
    every_update: bool = False
    exactly_once: bool = False
    share: float = 1.0
    rounds: int = 2
    has_plain_peer: bool = True
    of_plain: float | None = None
    of_streams: float | None = None
    within: float | None = None

    @property
    def config(self) -> dict[str, str]:
        """Return the settings of Kafka Streams that the workload asks for."""
        once = {"processing.guarantee": "exactly_once_v2"} if self.exactly_once else {}
        return once | ({"statestore.cache.max.bytes": "0"} if self.every_update else {})

    def sizes(self, records: int) -> tuple[int, int]:
        """Return how many records the small and the large run of this workload have, all lanes together."""
        large = int(records * self.share) // self.lanes * self.lanes
        return large // _SMALL_PART // self.lanes * self.lanes, large


@attrs.frozen
class Lane:
    """Names of topics."""

    source: str
    sink: str


@attrs.frozen
class Job:
    """A run; `id` is its application's."""

    id: str
    workload: Workload
    lanes: tuple[Lane, ...]
