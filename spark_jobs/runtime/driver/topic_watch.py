"""What an application does about its topics while it runs: watches and follows them, measures, purges."""

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event

import attrs
import structlog
from confluent_kafka import KafkaException

from infra.model.problems import Problem, ProblemsError, errors
from spark_jobs.runtime.driver.exchange import Exchange
from spark_jobs.runtime.driver.failures import failure_reason
from spark_jobs.runtime.driver.offsets import Positions
from spark_jobs.runtime.driver.purge import Purge
from spark_jobs.runtime.driver.query import SubtopologyQuery
from spark_jobs.runtime.driver.query_specs import QuerySpecs
from spark_jobs.runtime.driver.topic_check import Look, TopicKeeper
from spark_jobs.runtime.driver.uneven_growth import UnevenGrowth

_log = structlog.get_logger(__name__)
_TURN_SECONDS = 0.1
_WATCH_SECONDS = 1.0


@attrs.define(kw_only=True, eq=False)
class TopicsThread:
    """The body of a thread of its own, for brokers may be slow to answer.

    `queries` is name → query, of those that were started; `wrong` is told of problems that end the
    application. `lags` is query → how many records it still has to read, where that is known.
    """

    _keeper: TopicKeeper
    _positions: Positions
    _exchange: Exchange
    _purge: Purge
    _uneven: UnevenGrowth
    _specs: QuerySpecs
    _queries: Mapping[str, SubtopologyQuery]
    _wrong: Callable[[Sequence[Problem]], None]
    _look_seconds: float
    _purge_seconds: float
    lags: dict[str, int] = attrs.field(factory=dict, init=False)

    def run(self, stopping: Event) -> None:
        """Return when `stopping` is set."""
        recheck = self._specs.recheck
        watched = looked = purged = time.monotonic()
        while not stopping.wait(_TURN_SECONDS):
            now = time.monotonic()
            is_asked = recheck.is_set()
            if now - watched >= _WATCH_SECONDS or is_asked:
                recheck.clear()
                if self._watch(fully=is_asked or now - looked >= self._look_seconds):
                    looked = now
                watched = now
                self._measure()
            if now - purged >= self._purge_seconds:
                purged = now
                self._purge_repartitions()

    def _watch(self, *, fully: bool) -> bool:
        """Look at the topics, closely if something has changed; return whether it was a close look."""
        try:
            if not fully and not self._keeper.has_changed():
                return False
            look = self._keeper.look()
            wrong = errors(look.problems)
            if not wrong:
                self._follow(look)
        except (ProblemsError, KafkaException) as error:
            # The cluster may be away for a while; the queries know how long they bear that.
            _log.warning("topics could not be looked at", reason=failure_reason(error))
            return False
        if self._uneven.is_borne(wrong, time.monotonic()):
            _log.warning("joined topics are not expanded alike yet", problems=[p.summary for p in wrong])
        elif wrong:
            self._wrong(wrong)
        return True

    def _follow(self, look: Look) -> None:
        """Go on with the topics as they are. Queries of topics that went stand still until these are back."""
        before = self._specs.layout
        readers = [
            query for name, query in self._queries.items() if look.gone.intersection(before.topics(name))
        ]
        if look.gone:
            self._exchange.forget()
        for query in readers:
            query.hold()
        try:
            look = self._keeper.put_right(look)
            self._begin_anew(look, {topic for name in self._queries for topic in before.topics(name)})
            self._purge.forget(look.gone)
            if look.gone or look.counts != before.counts:
                self._specs.learn(look)
            self._keeper.remember(look)
        finally:
            for query in readers:
                query.resume()

    def _begin_anew(self, look: Look, read: set[str]) -> None:
        """Have topics that are back, and that a query reads, read from their first records."""
        back = sorted(look.gone & look.ids.keys())
        for topic in back:
            held = "it is read from its first record" if topic in read else "local state has what it held"
            _log.warning("topic was made anew", topic=topic, means=held)
        self._positions.rewind(
            [(topic, each) for topic in back if topic in read for each in range(look.counts.get(topic, 0))]
        )

    def _measure(self) -> None:
        """Find out how much is still to be read."""
        layout = self._specs.layout
        for name in self._queries:
            try:
                self.lags[name] = self._positions.left(layout.places(layout.topics(name)))
            except KafkaException:
                self.lags.pop(name, None)

    def _purge_repartitions(self) -> None:
        layout = self._specs.layout
        try:
            self._purge.purge(self._positions.committed(layout.places(layout.repartitions)))
        except KafkaException as error:
            _log.warning("repartition topics could not be purged", reason=str(error))
