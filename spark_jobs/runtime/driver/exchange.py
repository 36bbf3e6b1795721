"""What the queries of an application hand to each other: repartition topics, taken round by round."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import structlog
from confluent_kafka import KafkaException

from infra.model.compiled import CompiledApplication
from infra.model.nodes import TopicKind
from spark_jobs.runtime.driver.rounds import Offsets, Place, Rounds

Ranges = Mapping[Place, tuple[int, int]]
_log = structlog.get_logger(__name__)
_ROUND_SECONDS = 60.0


class Exchange:
    """Shared by the queries of one application.

    `ends` looks up where partitions end, `settled` does so once what was committed is seen. Both may raise
    `KafkaException`: then a round goes unnoticed, and its readers take what they see. Foreign-key joins go
    round in circles and are left out: their messages carry what they need to be right in any order.
    """

    def __init__(
        self, ends: Callable[[list[Place]], Offsets], settled: Callable[[list[Place]], Offsets], most: int
    ) -> None:
        self.shared: frozenset[str] = frozenset()
        """Repartition topics that more than one task writes."""
        self._ends = ends
        self._settled = settled
        self._most = most
        self._rounds = Rounds()
        self._places: Mapping[str, list[Place]] = {}

    def learn(self, compiled: CompiledApplication, counts: Mapping[str, int]) -> None:
        """Take in what the application is now; `counts` is topic → partitions."""
        between = {topic.name for topic in compiled.internal_topics if topic.kind is TopicKind.REPARTITION}
        parts = [part for part in compiled.subtopologies if not part.is_global]
        self.shared = frozenset(
            topic for topic in between if sum(part.tasks for part in parts if topic in part.sinks) > 1
        )
        self._places = {
            str(part.id): [
                (topic, each)
                for topic in sorted(between.intersection(part.sinks))
                for each in range(counts.get(topic, 0))
            ]
            for part in parts
        }

    def begin(self) -> None:
        """Before the first query starts: what lies in the topics belongs to rounds that are over."""
        for writer in self._places:
            self._end(writer, self._ends)

    def forget(self) -> None:
        """Begin anew: a topic is another one now, so the ends of its rounds say nothing."""
        self._rounds.forget()

    @contextmanager
    def round(self, writer: str) -> Iterator[None]:
        """A batch of the query `writer`."""
        with self._rounds.under_way(writer):
            yield
            self._end(writer, self._settled)

    def rest(self, topics: Collection[str], ends: Offsets) -> Ranges:
        """Return what else of `topics` belongs to the rounds that a batch up to `ends` ends in.

        Waits for those that are under way. Nothing if it were more than a batch may have.
        """
        rest: dict[Place, tuple[int, int]] = {}
        for writer, places in self._places.items():
            if any(topic in topics for topic, _ in places):
                whole = self._rounds.whole(writer, ends, _ROUND_SECONDS)
                rest |= {
                    place: (ends[place], end)
                    for place, end in whole.items()
                    if place[0] in topics and ends.get(place, end) < end
                }
        return rest if sum(end - first for first, end in rest.values()) <= self._most else {}

    def _end(self, writer: str, ends: Callable[[list[Place]], Offsets]) -> None:
        places = self._places.get(writer)
        if not places:
            return
        try:
            self._rounds.ended(writer, ends(places))
        except KafkaException as error:
            _log.debug("end of a round is not known", query=writer, reason=str(error))
