"""One sub-topology as a named streaming query, which is started again when it fails."""

import time
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

import attrs
import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.runtime.driver.batch import Batches
from spark_jobs.runtime.driver.failures import RestartPolicy, failure_reason
from spark_jobs.runtime.driver.sources import KafkaSource, read, with_ticks
from spark_jobs.runtime.driver.states import QueryState

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@attrs.frozen(kw_only=True)
class QuerySpec:
    """`source` and `checkpoint` are asked for at each start.

    What is committed says where a query without checkpoint begins; a topic that was made anew needs another
    checkpoint.
    """

    name: str
    checkpoint: Callable[[], str]
    source: Callable[[], KafkaSource]
    batches: Batches
    restarts: RestartPolicy = attrs.field(factory=RestartPolicy)


_log = structlog.get_logger(__name__)
_LOOK_SECONDS = 0.05


class BatchFailedError(Exception):
    """What Spark is told of a failure; the query keeps the whole."""


class SubtopologyQuery:
    """Started, looked after by `tend`, stopped by one thread; another one may `hold` and `resume` it."""

    def __init__(self, spark: SparkSession, spec: QuerySpec) -> None:
        self.spec = spec
        self.failure: BaseException | None = None
        self._spark = spark
        self._query: StreamingQuery | None = None
        self._lock = RLock()
        self._state = QueryState.STARTING
        self.restarts = 0
        self._failures = 0
        self._start_at = 0.0

    @property
    def state(self) -> QueryState:
        return self._state

    @property
    def progress(self) -> dict[str, Any] | None:
        """The latest progress report as Spark gives it."""
        try:
            return self._query.lastProgress if self._query is not None else None
        except Py4JError:
            return None

    def start(self) -> None:
        """Raise `ProblemsError` or `KafkaException` when the source's positions cannot be had."""
        stream = self.spec.batches.evaluated(read(self._spark, self.spec.source()))
        if self.spec.batches.ticks:
            stream = with_ticks(self._spark, stream)
        self._query = (
            stream.writeStream.queryName(self.spec.name)
            .option("checkpointLocation", self.spec.checkpoint())
            .foreachBatch(self._batch)
            .start()
        )
        self._state = QueryState.STARTING

    def tend(self) -> QueryState:
        """Look whether it still runs, start it again when that is due; return the state."""
        with self._lock:
            match self._state:
                case QueryState.WAITING if time.monotonic() >= self._start_at:
                    self._again()
                case QueryState.STARTING | QueryState.RUNNING if self._query is not None:
                    if not self._query.isActive:
                        self._failed()
                    elif self._state is QueryState.STARTING and not self._query.status["message"].startswith(
                        "Init"
                    ):
                        self._state = QueryState.RUNNING
                case _:
                    pass
            return self._state

    def process_all(self) -> bool:
        """Wait until what is there now has been processed; return whether it was, False = it has failed."""
        query = self._query
        if query is None or not query.isActive:
            return False
        try:
            if self.spec.batches.ticks:
                self._await_two_batches(query)
            else:
                query.processAllAvailable()
        except Exception:  # noqa: BLE001 - whatever it died of, `tend` finds it dead
            return False
        return query.isActive

    @property
    def reached(self) -> object:
        """Where in Kafka the last batch ended: what changes while there is something to do."""
        progress = self.progress
        return progress["sources"][0]["endOffset"] if progress else None

    def stop(self) -> None:
        with self._lock:
            if self._query is not None:
                self._query.stop()
            self._state = QueryState.STOPPED

    def hold(self) -> None:
        """Stop until `resume`, unless it has failed for good."""
        with self._lock:
            if self._state is not QueryState.FAILED:
                self.stop()

    def resume(self) -> None:
        """Have the next `tend` start it anew."""
        with self._lock:
            if self._state is QueryState.STOPPED:
                self._state, self._start_at = QueryState.WAITING, 0.0

    @staticmethod
    def _await_two_batches(query: "StreamingQuery") -> None:
        """Wait for a batch that began after now: ticks bring one every second, so nothing is ever all."""
        begun = (query.lastProgress or {"batchId": -1})["batchId"]
        while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < begun + 2:
            time.sleep(_LOOK_SECONDS)

    def _batch(self, rows: DataFrame, batch: int) -> None:
        try:
            self.spec.batches(rows, batch)
        except BaseException as error:  # noqa: BLE001 - kept for whoever asks what happened
            self.failure = error
            # Spark searches what it is told by a regular expression that overflows the stack on a long text.
            raise BatchFailedError(f"{type(error).__name__}, batch {batch}") from None
        self.failure = None
        self._failures = 0

    def _failed(self) -> None:
        self._failures += 1
        if self.failure is None and self._query is not None:
            self.failure = self._query.exception()
        pause = self.spec.restarts.backoff_ms(self.failure, self._failures)
        why = None if self.failure is None else failure_reason(self.failure)
        _log.warning("query failed", query=self.spec.name, again_in_ms=pause, reason=why)
        _log.debug("query failed", query=self.spec.name, failure=str(self.failure))
        if pause is None:
            self._state = QueryState.FAILED
        else:
            self._state = QueryState.WAITING
            self._start_at = time.monotonic() + pause / 1000

    def _again(self) -> None:
        self.restarts += 1
        try:
            self.start()
        except Exception as error:  # noqa: BLE001 - the broker may be away; the policy says how often to try
            self.failure = error
            self._failed()
