"""Records in columns, a few thousand at a time: no tuple is built for each of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import attrs

from headwater_spark.engine.records import Headers, OutputRecord

Columns = tuple[Sequence[bytes | None], Sequence[bytes | None], Sequence[int], Sequence[Headers]]
"""Keys, values, timestamps in milliseconds and headers of some records."""


@attrs.frozen
class TopicColumns:
    """Output records of one topic. `partition` None = the default partitioner chooses their partitions."""

    topic: str
    parts: Iterable[Columns]
    partition: int | None = None

    def records(self, columns: Columns) -> Iterator[OutputRecord]:
        """Return the records of one of the parts."""
        return zip(repeat(self.topic), repeat(self.partition), *columns, strict=False)


@attrs.frozen
class OutputColumns:
    """Output records of some topics, one topic after the other.

    They can be iterated as often as the parts of the topics.
    """

    topics: Sequence[TopicColumns]

    def __iter__(self) -> Iterator[OutputRecord]:
        for topic in self.topics:
            for columns in topic.parts:
                yield from topic.records(columns)

    def count_by_topic(self) -> dict[str, int]:
        """Return topic → number of records."""
        counts: dict[str, int] = {}
        for topic in self.topics:
            number = sum(len(keys) for keys, *_ in topic.parts)
            counts[topic.topic] = counts.get(topic.topic, 0) + number
        return counts
