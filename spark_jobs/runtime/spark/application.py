"""One application on Spark: a query for each sub-topology, looked after by one thread (`KafkaStreams`)."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import attrs
import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from infra.compiler import StreamsConfig
from infra.compiler.java_patterns import JavaPattern
from infra.compiler.streams_config import Guarantee
from infra.model.compiled import Backend, CompiledApplication
from infra.model.problems import Problem, ProblemsError, errors
from infra.model.topology import TopologyDocument
from infra.observe import Connection
from spark_jobs.runtime.client.exchange import Exchange
from spark_jobs.runtime.client.inputs import QueryInput, query_input
from spark_jobs.runtime.client.positions import Positions
from spark_jobs.runtime.client.purge import Purge
from spark_jobs.runtime.client.reset import Reset
from spark_jobs.runtime.client.restarts import Restarts
from spark_jobs.runtime.client.states import ClientState, QueryState
from spark_jobs.runtime.client.topics import Look, TopicKeeper
from spark_jobs.runtime.client.uneven_growth import UnevenGrowth
from spark_jobs.runtime.program import SubtopologyProgram
from spark_jobs.runtime.spark.batches import Batches
from spark_jobs.runtime.spark.offset_log import batch_ends
from spark_jobs.runtime.spark.progress import NOTHING, Progress
from spark_jobs.runtime.spark.queries import QuerySpec, SubtopologyQuery
from spark_jobs.runtime.spark.sources import RECORDS_AT_ONCE, KafkaSource, read_range
from spark_jobs.runtime.worker.order import Outcome, WorkOrder

_log = structlog.get_logger(__name__)
_TEND_SECONDS = 0.1
_WATCH_SECONDS = 1.0
_LOOK_SECONDS = 30.0
_PURGE_KEY = "repartition.purge.interval.ms"
_PURGE_MS = 30_000
Place = tuple[str, int]


@attrs.frozen(kw_only=True)
class RunSettings:
    """`checkpoint` is a folder that the driver and Spark reach, `state_folder` one on each worker's own disk.

    `look_seconds` is how often the topics' settings are looked at; whether they are there is, once a second.
    """

    connection: Connection
    checkpoint: str
    state_folder: Path
    records_at_once: int = RECORDS_AT_ONCE
    restarts: Restarts = attrs.field(factory=Restarts)
    look_seconds: float = _LOOK_SECONDS


class StreamsApplication:
    """Make it, `start` it, `close` it. `state`, `problems` and `progress` may be read by any thread."""

    def __init__(
        self,
        spark: SparkSession,
        document: TopologyDocument,
        programs: Callable[[CompiledApplication], tuple[SubtopologyProgram, ...]],
        settings: RunSettings,
    ) -> None:
        self.id = document.application.id
        self.progress = Progress()
        self.problems: tuple[Problem, ...] = ()
        self._spark = spark
        self._make_programs = programs
        self._settings = settings
        config = document.application.config
        streams_config = StreamsConfig.of(document.application)
        self._exactly_once = streams_config.guarantee is Guarantee.EXACTLY_ONCE_V2
        self._uneven = UnevenGrowth.of(streams_config)
        self._purge_seconds = int(config.get(_PURGE_KEY, _PURGE_MS)) / 1000
        self._keeper = TopicKeeper(document, settings.connection)
        self._positions = Positions(settings.connection, self.id)
        self._exchange = Exchange(self._positions.ends, settings.records_at_once)
        self._purge = Purge(settings.connection)
        self._state = ClientState.CREATED
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._stopping = threading.Event()
        self._recheck = threading.Event()
        self._counts: Mapping[str, int] = {}
        self._ids: Mapping[str, str] = {}
        self._edition = 0
        self._programs: Mapping[str, SubtopologyProgram] = {}
        self._inputs: dict[str, QueryInput] = {}
        self._repartitions: frozenset[str] = frozenset()
        self._queries: dict[str, SubtopologyQuery] = {}
        self._native: frozenset[str] = frozenset()
        self._lags: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name=f"{self.id}-client", daemon=True)

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def queries(self) -> Mapping[str, SubtopologyQuery]:
        return self._queries

    def start(self) -> None:
        """Check or set up the topics, start the queries; raises `ProblemsError`: then nothing has started."""
        look = self._keeper.prepare()
        self._build(look)
        for name, program in self._programs.items():
            if not program.is_global:
                self._queries[name] = SubtopologyQuery(self._spark, self._spec(program))
        self._become(ClientState.REBALANCING)
        self._exchange.begin()
        for query in self._queries.values():
            query.start()
        self._thread.start()

    def told(self) -> Iterator[Mapping[str, Any]]:
        """Yield what there is to say of each sub-topology."""
        progress = self.progress.told()
        for name, query in self._queries.items():
            topics = self._topics(name)
            yield {
                "id": name,
                "state": query.state.value,
                "backend": (Backend.NATIVE if name in self._native else Backend.TASKS).value,
                "sources": list(topics),
                "parallelism": max((self._counts[topic] for topic in topics), default=0),
                "restarts": query.restarts,
                "failure": str(query.failure) if query.failure is not None else "",
                "lag": self._lags.get(name),
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

    # what the queries ask

    def _spec(self, program: SubtopologyProgram) -> QuerySpec:
        name = program.name
        input_ = self._inputs[name]
        return QuerySpec(
            name=f"{self.id} sub-topology {name}",
            checkpoint=lambda: self._checkpoint(name),
            source=lambda: self._source(name),
            batches=Batches(
                order=lambda batch: self._order(name, batch),
                is_single=len(input_.topics) == 1 and not input_.patterns,
                report=lambda batch, outcomes: self._report(name, batch, outcomes),
                round=lambda: self._exchange.round(name),
                rest=lambda order: self._exchange.rest(self._topics(name), order.ends),
                more=lambda ranges: read_range(self._spark, self._source(name), ranges),
                ticks=input_.ticks,
            ),
            restarts=self._settings.restarts,
        )

    def _source(self, name: str) -> KafkaSource:
        input_ = self._inputs[name]
        return KafkaSource(
            connection=self._settings.connection,
            topics=input_.topics,
            patterns=input_.patterns,
            starts=self._positions.begin(self._resets(name), time.time_ns() // 1_000_000),
            exactly_once=self._exactly_once,
            records_at_once=self._settings.records_at_once,
        )

    def _checkpoint(self, name: str) -> str:
        """Return a query's folder. Offsets of a topic say nothing of another that has its name now."""
        ids = " ".join(self._ids.get(topic, "") for topic in self._inputs[name].topics)
        edition = blake2b(ids.encode(), digest_size=4).hexdigest()
        return f"{self._settings.checkpoint.rstrip('/')}/{self.id}/{name}/{edition}"

    def _resets(self, name: str) -> Mapping[Place, Reset]:
        program, input_ = self._programs[name], self._inputs[name]
        return {
            (topic, partition): input_.resets[program.source(topic)]
            for topic in self._topics(name)
            for partition in range(self._counts[topic])
        }

    def _topics(self, name: str) -> tuple[str, ...]:
        """Return the topics that a query reads at present."""
        input_ = self._inputs[name]
        patterns = [JavaPattern(pattern) for pattern in input_.patterns]
        matching = {topic for topic in self._counts if any(each.matches(topic) for each in patterns)}
        return tuple(sorted({topic for topic in input_.topics if topic in self._counts} | matching))

    def _order(self, name: str, batch: int) -> WorkOrder:
        globals_ = tuple(program for program in self._programs.values() if program.is_global)
        topics = {*self._topics(name), *(topic for program in globals_ for topic in program.sources)}
        return WorkOrder(
            application=self.id,
            group=self.id,
            connection=self._settings.connection,
            program=self._programs[name],
            global_programs=globals_,
            edition=self._edition,
            state_folder=self._settings.state_folder / self.id,
            counts={topic: self._counts[topic] for topic in sorted(topics) if topic in self._counts},
            ends=batch_ends(self._checkpoint(name), batch),
            shared=self._exchange.shared,
            exactly_once=self._exactly_once,
            is_native=name in self._native,
        )

    def _report(self, name: str, batch: int, outcomes: list[Outcome]) -> None:
        self.progress.batch(name, batch, outcomes)
        for outcome in outcomes:
            if outcome.migrated is not None:
                _log.info(
                    "record waits for a partition", topic=outcome.migrated[0], wanted=outcome.migrated[1]
                )
                self._recheck.set()

    def _build(self, look: Look) -> None:
        compiled = look.compiled
        self._counts, self._ids = look.counts, look.ids
        programs = [program.with_counts(self._counts) for program in self._make_programs(compiled)]
        self._programs = {program.name: program for program in programs}
        self._inputs = {program.name: query_input(program) for program in programs}
        self._repartitions = frozenset(t for part in compiled.subtopologies for t in part.repartition_topics)
        self._native = frozenset(
            str(part.id) for part in compiled.subtopologies if part.backend is Backend.NATIVE
        )
        self._exchange.learn(compiled, self._counts)
        self._edition += 1

    # the client's own threads

    def _run(self) -> None:
        """Look after the queries; topics have a thread of their own, for the broker may be slow to answer."""
        topics = threading.Thread(target=self._look_after_topics, name=f"{self.id}-topics", daemon=True)
        topics.start()
        while not self._stopping.wait(_TEND_SECONDS):
            self._tend()
        topics.join()
        self._end()

    def _look_after_topics(self) -> None:
        watched = looked = purged = time.monotonic()
        while not self._stopping.wait(_TEND_SECONDS):
            now = time.monotonic()
            is_asked = self._recheck.is_set()
            if now - watched >= _WATCH_SECONDS or is_asked:
                self._recheck.clear()
                if self._watch(fully=is_asked or now - looked >= self._settings.look_seconds):
                    looked = now
                watched = now
                self._measure()
            if now - purged >= self._purge_seconds:
                purged = now
                self._purge_repartitions()

    def _tend(self) -> None:
        states = {query.tend() for query in self._queries.values()}
        if QueryState.FAILED in states:
            failed = next(query for query in self._queries.values() if query.state is QueryState.FAILED)
            _log.error("query failed for good", query=failed.spec.name, failure=str(failed.failure))
            self._become(ClientState.PENDING_ERROR)
            self._stopping.set()
        elif states == {QueryState.RUNNING}:
            self._become(ClientState.RUNNING)
        else:
            self._become(ClientState.REBALANCING)

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
            _log.warning("topics could not be looked at", reason=str(error))
            return False
        if self._uneven.is_borne(wrong, time.monotonic()):
            _log.warning("joined topics are not expanded alike yet", problems=[p.summary for p in wrong])
        elif wrong:
            self.problems = tuple(wrong)
            for problem in wrong:
                _log.error(
                    "application stops", problem=problem.code, topic=problem.topic, summary=problem.summary
                )
            self._become(ClientState.PENDING_ERROR)
            self._stopping.set()
        return True

    def _follow(self, look: Look) -> None:
        """Go on with the topics as they are. Queries of topics that went stand still until these are back."""
        readers = [
            query for name, query in self._queries.items() if look.gone.intersection(self._topics(name))
        ]
        if look.gone:
            self._exchange.forget()
        for query in readers:
            query.hold()
        try:
            look = self._keeper.put_right(look)
            read = {topic for name in self._queries for topic in self._topics(name)}
            for topic in sorted(look.gone & look.ids.keys()):
                held = "it is read from its first record" if topic in read else "local state has what it held"
                _log.warning("topic was made anew", topic=topic, means=held)
            back = sorted(look.gone & look.ids.keys() & read)
            places = [(topic, each) for topic in back for each in range(look.counts.get(topic, 0))]
            self._positions.rewind(places)
            self._purge.forget(look.gone)
            if look.gone or look.counts != self._counts:
                self._build(look)
            self._keeper.remember(look)
        finally:
            for query in readers:
                query.resume()

    def _measure(self) -> None:
        """Find out how much is still to be read."""
        for name in self._queries:
            places = [(topic, each) for topic in self._topics(name) for each in range(self._counts[topic])]
            try:
                self._lags[name] = self._positions.left(places)
            except KafkaException:
                self._lags.pop(name, None)

    def _purge_repartitions(self) -> None:
        places = [
            (topic, partition)
            for topic in sorted(self._repartitions)
            for partition in range(self._counts.get(topic, 0))
        ]
        try:
            self._purge.purge(self._positions.committed(places))
        except KafkaException as error:
            _log.warning("repartition topics could not be purged", reason=str(error))

    def _end(self) -> None:
        failed = self._state is ClientState.PENDING_ERROR
        if not failed:
            self._become(ClientState.PENDING_SHUTDOWN)
        elif not self.problems:
            self.problems = self._found_wrong()
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

    def _become(self, state: ClientState) -> None:
        with self._changed:
            if self._state.may_become(state):
                _log.info("state", application=self.id, old=self._state.value, new=state.value)
                self._state = state
                self._changed.notify_all()
