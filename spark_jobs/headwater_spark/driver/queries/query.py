"""One sub-topology as a streaming query of Spark, which is restarted after failures."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from headwater.model.problems import Problem
from headwater_spark.driver.captured_failures import capture_failure
from headwater_spark.driver.failures import Failure, failed_thread, query_failed
from headwater_spark.driver.input.sources import Checkpoint, read_stream, with_ticks
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.outages import OutageWait
from headwater_spark.driver.queries.batch import BatchProcessor
from headwater_spark.driver.queries.row_distribution import select_task_rows
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.driver.queries.task_runner import BatchStoppedError
from headwater_spark.driver.states import QueryState
from headwater_spark.engine.records import Commits, Offsets, TopicPartition
from headwater_spark.spark_internals.input_signals import InputSignal

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = structlog.get_logger(__name__)
_POLL_SECONDS = 0.05
_CHECK_SECONDS = 0.5
"""The time between two checks of a running query, each of which is a call of the JVM."""


class BatchFailedError(Exception):
    """The short failure that Spark gets; the query keeps the original one."""


class SubtopologyQuery:
    """One thread starts, polls and stops the query; another one may `pause` and `resume` it.

    With `signal`, it may wait for that before it checks for new records (`input.watch`).
    """

    def __init__(self, spark: SparkSession, spec: QuerySpec, signal: InputSignal | None = None) -> None:
        self.failure: Failure | None = None
        """The last failure; None after a batch, or a step of one, that has committed records since."""
        self.restarts = 0
        self._spark = spark
        self._spec = spec
        self._signal = signal
        self._process_batch = BatchProcessor(spec, self._forget_failures)
        self._query: StreamingQuery | None = None
        self._lock = RLock()
        self._state = QueryState.STARTING
        self._failures_in_a_row = 0
        """Without failures of an outage."""
        self._outage = OutageWait(spec.name, spec.batches.brokers)
        self._has_failed_batch = False
        """A batch has failed since the last start, so `failure` is the reason why Spark ended the query."""
        self._restart_at = self._check_at = 0.0

    @property
    def state(self) -> QueryState:
        return self._state

    @property
    def restart_in(self) -> float:
        """Seconds until a query in state WAITING is restarted."""
        return self._restart_at - time.monotonic()

    @property
    def progress(self) -> dict[str, Any] | None:
        """Spark's latest progress report."""
        try:
            return self._query.lastProgress if self._query is not None else None
        except Py4JError:
            return None

    @property
    def end_offset(self) -> object:
        """The end of the last batch in Kafka; it changes as long as the query finds new records."""
        progress = self.progress
        return progress["sources"][0]["endOffset"] if progress else None

    @property
    def read_to(self) -> Offsets:
        """Topic partition → offset after the last batch, as Spark reports it."""
        ends: dict[TopicPartition, int] = {}
        for source in (self.progress or {"sources": ()})["sources"]:
            offsets = source["endOffset"]
            with suppress(ValueError):
                offsets = json.loads(offsets) if isinstance(offsets, str) else offsets
            if isinstance(offsets, Mapping):  # the offset of the ticks is a number
                for topic, partitions in offsets.items():
                    ends |= {(topic, int(each)): offset for each, offset in partitions.items()}
        return ends

    def start(self) -> None:
        """Start the query.

        Committed offsets determine where it starts: the checkpoint of an earlier start is deleted. Its last
        offsets replace committed offsets that the brokers have forgotten.

        Raises:
            ProblemsError: A partition has no start offset.
            KafkaException: The offsets cannot be read.
            Py4JJavaError: The checkpoint cannot be deleted.
        """
        checkpoint = Checkpoint(self._spark, self._spec.input.checkpoint_folder())
        source, committed = self._spec.input.create_source(
            checkpoint.last_offsets(), self._process_batch.known_commits
        )
        checkpoint.delete()
        self._has_failed_batch = False
        self._process_batch.start(source.start_offsets, committed, source.overtaken)
        # Once for a stream: Spark's analysis takes as long as a batch.
        stream = select_task_rows(read_stream(self._spark, source, self._signal), self._spec)
        if self._spec.ticks:
            stream = with_ticks(self._spark, stream)
        self._query = (
            stream.writeStream.queryName(self._spec.name)
            .option("checkpointLocation", self._spec.input.checkpoint_folder())
            .foreachBatch(_weak_callback(self._on_batch))
            .start()
        )
        self._state = QueryState.STARTING

    def poll(self) -> QueryState:
        """Check whether the query is running, restart it when that is due; return the state."""
        with self._lock:
            match self._state:
                case QueryState.WAITING if time.monotonic() >= self._restart_at:
                    if (pause := self._outage.extend()) is None:
                        self._restart()
                    else:
                        self._restart_at = time.monotonic() + pause / 1000
                case QueryState.STARTING | QueryState.RUNNING if self._query is not None and self._is_due():
                    if not self._query.isActive:
                        self._handle_failure()
                    elif self._state is QueryState.STARTING and not self._query.status["message"].startswith(
                        "Init"
                    ):
                        self._state = QueryState.RUNNING
                case _:
                    pass
            return self._state

    def process_available(self) -> bool:
        """Wait until the records that exist now are processed; return False if the query has stopped."""
        query = self._query
        if query is None or not query.isActive:
            return False
        try:
            if self._spec.ticks:
                self._await_two_batches(query)
            else:
                query.processAllAvailable()
        except Exception:  # noqa: BLE001 - `poll` handles the failure
            return False
        return query.isActive

    def stop(self) -> None:
        with self._lock:
            self._process_batch.stop()
            if self._query is not None:
                self._query.stop()
            self._state = QueryState.STOPPED

    def repair_commits(self, offsets: GroupOffsets) -> tuple[TopicPartition, ...]:
        """Commit again what outdated workers have replaced; return where. Raises `KafkaException`."""
        return self._process_batch.repair_commits(offsets)

    def renew_offsets(self) -> bool:
        """Let tasks commit the offsets of idle partitions again; return False if that has to be repeated."""
        return self._state is QueryState.RUNNING and self._process_batch.renew_offsets()

    def pause(self) -> None:
        """Stop until `resume`, unless the query has failed. Then its tasks commit nothing any more."""
        with self._lock:
            if self._state is QueryState.FAILED:
                return
            self.stop()
        # A renewal of offsets is no job of Spark's query: it would replace what is committed next.
        self._process_batch.await_renewal()

    def resume(self) -> None:
        """Let the next `poll` start the query again."""
        with self._lock:
            if self._state is QueryState.STOPPED:
                self._state, self._restart_at = QueryState.WAITING, 0.0

    def request_hold(self) -> None:
        """Begin no batch and no step until `cancel_hold` or `release`; one that has begun continues."""
        self._process_batch.request_hold()

    def cancel_hold(self) -> None:
        self._process_batch.cancel_hold()

    def hold(self, seconds: float) -> bool:
        """Process no batch, and do not restart the query, until the same thread calls `release`.

        Return False, and hold nothing, if a batch or step has not ended in `seconds`.
        """
        self._lock.acquire()
        is_held = self._process_batch.hold(seconds)
        if not is_held:
            self._lock.release()
        return is_held

    def forget_commits(self) -> None:
        """Repair no commit until tasks have committed again: a move that failed may have committed."""
        self._process_batch.forget_commits()

    def release(self, committed: Commits | None = None) -> None:
        """Continue; from what is `committed` now if processors were added meanwhile."""
        self._process_batch.release(committed)
        self._lock.release()

    @staticmethod
    def _await_two_batches(query: "StreamingQuery") -> None:
        """Wait for a batch that began after now: with ticks, the query has new rows each second."""
        first = (query.lastProgress or {"batchId": -1})["batchId"]
        while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < first + 2:
            time.sleep(_POLL_SECONDS)

    def _is_due(self) -> bool:
        """Return whether to ask the JVM now: always while the query starts, or if a batch has failed."""
        now = time.monotonic()
        if self._state is QueryState.RUNNING and not self._has_failed_batch and now < self._check_at:
            return False
        self._check_at = now + _CHECK_SECONDS
        return True

    def _on_batch(self, rows: DataFrame, batch: int) -> None:
        try:
            self._process_batch(rows, batch)
            self._spec.batches.finish_batch()
        except BatchStoppedError:
            raise
        except BaseException as error:  # noqa: BLE001 - kept for the status
            self.failure, self._has_failed_batch = capture_failure(error), True
            # Spark matches the message with a regular expression that overflows the stack on a long text.
            raise BatchFailedError(f"{type(error).__name__}, batch {batch}") from None
        self._forget_failures()

    def _forget_failures(self) -> None:
        """Begin to count failures again: records were committed."""
        self.failure = None
        self._failures_in_a_row = 0
        self._outage.end()

    def _handle_failure(self) -> None:
        if not self._has_failed_batch and self._query is not None:
            exception = self._query.exception()
            self.failure = None if exception is None else capture_failure(exception)
        failure, batch = self.failure, self._process_batch
        thread = batch.failed_thread or failed_thread(failure, batch.thread_names)
        outage_ms = self._outage.begin(failure)
        if outage_ms is None:
            self._failures_in_a_row += 1
        backoff = self._spec.batches.handle_failure(failure, thread, self._failures_in_a_row, outage_ms)
        reason, text = (None, None) if failure is None else (failure.reason, failure.text)
        _log.warning(
            "query failed" if outage_ms is None else "query failed, waiting until brokers answer",
            query=self._spec.name,
            thread=thread,
            retry_in_ms=backoff,
            reason=reason,
        )
        _log.debug("query failed", query=self._spec.name, failure=text)
        if backoff is None:
            self._state = QueryState.FAILED
        else:
            self._state = QueryState.WAITING
            self._restart_at = time.monotonic() + backoff / 1000

    def _restart(self) -> None:
        self.restarts += 1
        try:
            self.start()
        except Exception as error:  # noqa: BLE001 - the policy decides how often to retry
            self.failure, self._has_failed_batch = capture_failure(error), True
            self._handle_failure()


def query_failures(
    application: str, queries: Mapping[str, SubtopologyQuery], response: str
) -> tuple[Problem, ...]:
    """Return the problem of each query that has failed; `response` is the last one of the handler."""
    return tuple(
        query_failed(application, name, query.failure, response)
        for name, query in queries.items()
        if query.state is QueryState.FAILED
    )


def _weak_callback(process: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """Return a function that calls a method as long as its object exists.

    Spark's JVM keeps the function until it collects its garbage, long after the query has stopped. That must
    not keep the application and its Kafka clients, whose threads run until they are freed.
    """
    method = WeakMethod(process)

    def process_if_present(rows: DataFrame, batch: int) -> None:
        if (present := method()) is None:
            raise BatchStoppedError  # the batch must not count as processed
        present(rows, batch)

    return process_if_present
