"""One application on Spark: a query for each sub-topology, looked after by one thread (`KafkaStreams`)."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from pyspark.sql import SparkSession

from infra.compiler import StreamsConfig
from infra.compiler.streams_config import Guarantee
from infra.model.compiled import Backend
from infra.model.problems import Problem, ProblemsError, errors
from infra.model.topology import TopologyDocument
from spark_jobs.runtime.driver.exchange import Exchange
from spark_jobs.runtime.driver.failures import failure_reason, query_failed
from spark_jobs.runtime.driver.offsets import Positions
from spark_jobs.runtime.driver.progress import NOTHING
from spark_jobs.runtime.driver.purge import Purge
from spark_jobs.runtime.driver.query import SubtopologyQuery
from spark_jobs.runtime.driver.query_specs import Programs, QuerySpecs
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.states import ClientState, QueryState
from spark_jobs.runtime.driver.topic_check import TopicKeeper
from spark_jobs.runtime.driver.topic_watch import TopicsThread
from spark_jobs.runtime.driver.uneven_growth import UnevenGrowth

_log = structlog.get_logger(__name__)
_TEND_SECONDS = 0.1
_PURGE_KEY = "repartition.purge.interval.ms"
_PURGE_MS = 30_000


class StreamsApplication:
    """Make it, `start` it, `close` it. `state`, `problems` and `told` may be read by any thread."""

    def __init__(
        self, spark: SparkSession, document: TopologyDocument, programs: Programs, settings: RunSettings
    ) -> None:
        config = StreamsConfig.of(document.application)
        purge_ms = int(document.application.config.get(_PURGE_KEY, _PURGE_MS))
        self.id = document.application.id
        self.problems: tuple[Problem, ...] = ()
        self._spark = spark
        self._keeper = TopicKeeper(document, settings.connection)
        self._positions = Positions(settings.connection, self.id)
        self._exchange = Exchange(
            self._positions.ends, self._positions.settled_ends, settings.records_at_once
        )
        self._specs = QuerySpecs(
            application=self.id,
            spark=spark,
            programs=programs,
            settings=settings,
            positions=self._positions,
            exchange=self._exchange,
            exactly_once=config.guarantee is Guarantee.EXACTLY_ONCE_V2,
        )
        self._queries: dict[str, SubtopologyQuery] = {}
        self._topics = TopicsThread(
            keeper=self._keeper,
            positions=self._positions,
            exchange=self._exchange,
            purge=Purge(settings.connection),
            uneven=UnevenGrowth.of(config),
            specs=self._specs,
            queries=self._queries,
            wrong=self._stop_for,
            look_seconds=settings.look_seconds,
            purge_seconds=purge_ms / 1000,
        )
        self._state = ClientState.CREATED
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{self.id}-client", daemon=True)

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def queries(self) -> Mapping[str, SubtopologyQuery]:
        return self._queries

    def start(self) -> None:
        """Check or set up the topics, start the queries; raises `ProblemsError`: then nothing has started."""
        self._specs.learn(self._keeper.prepare())
        for name in self._specs.layout.queries:
            self._queries[name] = SubtopologyQuery(self._spark, self._specs.spec(name))
        self._become(ClientState.REBALANCING)
        self._exchange.begin()
        for query in self._queries.values():
            query.start()
        self._thread.start()

    def told(self) -> Iterator[Mapping[str, Any]]:
        """Yield what there is to say of each sub-topology."""
        layout = self._specs.layout
        progress = self._specs.progress.told()
        for name, query in self._queries.items():
            topics = layout.topics(name)
            yield {
                "id": name,
                "state": query.state.value,
                "backend": (Backend.NATIVE if name in layout.native else Backend.TASKS).value,
                "sources": list(topics),
                "parallelism": max((layout.counts[topic] for topic in topics), default=0),
                "restarts": query.restarts,
                "failure": failure_reason(query.failure) if query.failure is not None else "",
                "lag": self._topics.lags.get(name),
                **progress.get(name, NOTHING),
            }

    def stop(self) -> None:
        """Ask for the end; `wait` tells when it has come."""
        self._stopping.set()

    def close(self) -> None:
        """Stop the queries between two batches where that takes no longer than Spark waits for them."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether it has ended, for whatever reason, within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state.is_final, seconds)

    def wait_until_idle(self) -> None:
        """Wait until nothing is left to do in any query: a round in which none had a batch."""
        before: dict[str, object] = {"": None}
        while not self._state.is_final:
            answers = [query.process_all() for query in self._queries.values()]
            now: dict[str, object] = {name: query.reached for name, query in self._queries.items()}
            if all(answers) and now == before:
                return
            before = now
            self.wait(_TEND_SECONDS)

    def _run(self) -> None:
        topics = threading.Thread(
            target=self._topics.run, args=(self._stopping,), name=f"{self.id}-topics", daemon=True
        )
        topics.start()
        while not self._stopping.wait(_TEND_SECONDS):
            self._tend()
        topics.join()
        self._end()

    def _tend(self) -> None:
        states = {query.tend() for query in self._queries.values()}
        if QueryState.FAILED in states:
            self._become(ClientState.PENDING_ERROR)
            self._stopping.set()
        elif states == {QueryState.RUNNING}:
            self._become(ClientState.RUNNING)
        else:
            self._become(ClientState.REBALANCING)

    def _stop_for(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        for problem in problems:
            _log.error(
                "application stops", problem=problem.code, topic=problem.topic, summary=problem.summary
            )
        self._become(ClientState.PENDING_ERROR)
        self._stopping.set()

    def _end(self) -> None:
        failed = self._state is ClientState.PENDING_ERROR
        if not failed:
            self._become(ClientState.PENDING_SHUTDOWN)
        elif not self.problems:
            self.problems = self._found_wrong() or tuple(self._failures())
        for query in self._queries.values():
            query.stop()
        self._positions.close()
        self._become(ClientState.ERROR if failed else ClientState.NOT_RUNNING)

    def _found_wrong(self) -> tuple[Problem, ...]:
        """Return what is wrong with the topics: a query may notice before anybody has looked."""
        try:
            return tuple(errors(self._keeper.look().problems))
        except ProblemsError as error:
            return tuple(error.problems)

    def _failures(self) -> Iterator[Problem]:
        for name, query in self._queries.items():
            if query.state is QueryState.FAILED:
                yield query_failed(self.id, name, query.failure)

    def _become(self, state: ClientState) -> None:
        with self._changed:
            if self._state.may_become(state):
                _log.info("state", application=self.id, old=self._state.value, new=state.value)
                self._state = state
                self._changed.notify_all()
