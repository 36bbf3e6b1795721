"""Watch the topics while the application runs: follow changes, measure the lag, purge repartition topics."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event, Lock
from typing import Protocol

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.kafka.kafka_errors import COORDINATOR_MOVING, NO_ANSWER
from headwater.model.problems import Problem, ProblemsError, errors
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.input.rounds import RepartitionRounds
from headwater_spark.driver.input.watch import InputWatch
from headwater_spark.driver.offsets import Backlog, GroupOffsets, RecordPurger
from headwater_spark.driver.queries.progress import ProgressWatch
from headwater_spark.driver.queries.query import SubtopologyQuery
from headwater_spark.driver.queries.specs import QuerySpecs
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.topic_check import TopicCheck, UnevenExpansion
from headwater_spark.engine.records import Offsets, TopicPartition

_log = structlog.get_logger(__name__)
_INTERVAL_SECONDS = 1.0
_OUTAGE_SECONDS = 5.0
"""How long requests must have failed: a broker that restarts, or a closed connection, is no outage."""
_POLL_SECONDS = 0.1
_QUICK_CHECK_SECONDS = 1.0
_LAYOUT_SECONDS = 5.0


class WatchedTopics(Protocol):
    """The topics of the application (`ApplicationTopics`)."""

    def has_changed(self) -> bool:
        """Return whether a topic was created, deleted or replaced; raises `ProblemsError`."""
        ...

    def reconnect(self) -> None:
        """Let the next `has_changed` open new connections."""
        ...


@attrs.define(kw_only=True, eq=False)
class ClusterWatch:
    """Watches whether the cluster can be read, and whether topics have changed.

    One thread calls `run`, any thread reads `problem`, one other thread takes the changes.

    Brokers keep a connection whose user gets another password, and whose certificate expires. Only a new one
    shows it. Queries and topic checks open new ones. So this watch does, too, after a topic check has failed,
    or `failures`, the number of failures of the queries, has changed.
    """

    _topics: WatchedTopics
    _failures: Callable[[], int] = lambda: 0
    _clock: Callable[[], float] = time.monotonic
    problem: str = attrs.field(default="", init=False)
    """Why the cluster has not been readable for some seconds; empty if it is."""
    _failing_since: float | None = attrs.field(default=None, init=False)
    _failures_seen: int = attrs.field(default=0, init=False)
    _changed: Event = attrs.field(factory=Event, init=False)
    _reconnect_requested: Event = attrs.field(factory=Event, init=False)

    def run(self, stopping: Event) -> None:
        """Observe the cluster until `stopping` is set."""
        while not stopping.wait(_INTERVAL_SECONDS):
            self.observe()

    def observe(self) -> None:
        """Read the topics once. Log when brokers stop answering and when they answer again."""
        begin = self._clock()
        failures = self._failures()
        if failures != self._failures_seen or self._reconnect_requested.is_set():
            self._failures_seen = failures
            self._reconnect_requested.clear()
            self._topics.reconnect()
        try:
            has_changed = self._topics.has_changed()
        except (ProblemsError, KafkaException) as error:
            self._note_failure(begin, failure_reason(error))
            return
        if self.problem:
            _log.info("cluster readable again")
        self.problem, self._failing_since = "", None
        if has_changed:
            self._changed.set()

    def _note_failure(self, begin: float, reason: str) -> None:
        """Note that a request that was sent at `begin` has failed."""
        if self._failing_since is None:
            self._failing_since = begin
        if self._clock() - self._failing_since < _OUTAGE_SECONDS:
            return
        if not self.problem:
            _log.warning("cluster not readable, retrying", reason=reason)
        self.problem = reason

    def request_reconnect(self) -> None:
        """Let the next `observe` open new connections: another request has failed."""
        self._reconnect_requested.set()

    def take_change(self) -> bool:
        """Return whether a topic has changed since the last call."""
        if not self._changed.is_set():
            return False
        self._changed.clear()
        return True


@attrs.define(kw_only=True, eq=False)
class TopicWatch:
    """Checks the topics, observes the progress of the queries, and purges repartition topics.

    It runs in its own thread, because brokers may be slow to answer. `queries` is name → started query.
    `on_errors` gets the problems that stop the application.
    """

    _topics: ApplicationTopics
    _cluster_watch: ClusterWatch
    _offsets: GroupOffsets
    _rounds: RepartitionRounds
    _purger: RecordPurger
    _uneven: UnevenExpansion
    _specs: QuerySpecs
    _queries: Mapping[str, SubtopologyQuery]
    _progress_watch: ProgressWatch
    _input_watch: InputWatch
    _on_errors: Callable[[Sequence[Problem]], None]
    _check_interval_seconds: float
    _purge_interval_seconds: float
    _layout_changes: Lock
    """Held while topics are checked and the layout is replaced; an expansion of processors does so, too."""
    _failure: str = attrs.field(default="", init=False)
    """Why the last topic check failed; empty if it did not."""

    def run(self, stopping: Event) -> None:
        """Watch until `stopping` is set."""
        check_requested = self._specs.check_requested
        quick_check_at = full_check_at = purged_at = time.monotonic()
        while not stopping.wait(_POLL_SECONDS):
            now = time.monotonic()
            is_requested = check_requested.is_set()
            if now - quick_check_at >= _QUICK_CHECK_SECONDS or is_requested:
                check_requested.clear()
                if self._check(fully=is_requested or now - full_check_at >= self._check_interval_seconds):
                    full_check_at = now
                quick_check_at = now
                self._observe_progress()
            if now - purged_at >= self._purge_interval_seconds and not self._cluster_watch.problem:
                purged_at = now
                self._purge_repartition_topics()

    def _check(self, *, fully: bool) -> bool:
        """Check the topics, fully if one has changed; return whether it was a full check.

        While an expansion of processors changes the layout, for minutes, only progress is observed.
        """
        if not self._layout_changes.acquire(timeout=_LAYOUT_SECONDS):
            return False
        try:
            return self._check_alone(fully=fully)
        finally:
            self._layout_changes.release()

    def _check_alone(self, *, fully: bool) -> bool:
        if self._cluster_watch.problem or not (self._cluster_watch.take_change() or fully):
            return False
        try:
            check = self._topics.check()
            wrong = errors(check.problems)
            if not wrong:
                self._use_topics(check)
        except (ProblemsError, KafkaException) as error:
            # The cluster may be unavailable for a while: the queries wait for it.
            self._note_failure(failure_reason(error))
            return False
        self._failure = ""
        if self._uneven.is_tolerated(wrong, time.monotonic()):
            _log.warning(
                "joined topics have different partition counts",
                problems=[problem.summary for problem in wrong],
            )
        elif wrong:
            self._on_errors(wrong)
        return True

    def _note_failure(self, reason: str) -> None:
        """Log why a check failed, once: it is repeated each second."""
        if reason != self._failure:
            self._failure = reason
            _log.warning("topic check failed, retrying", reason=reason)
            self._cluster_watch.request_reconnect()

    def _use_topics(self, check: TopicCheck) -> None:
        """Use the topics of `check`. Queries of lost topics are paused until the topics exist again."""
        before = self._specs.layout
        readers = [
            query for name, query in self._queries.items() if check.lost.intersection(before.topics(name))
        ]
        if check.lost:
            self._rounds.reset()
        for name, query in self._queries.items():
            if query in readers:
                query.pause()
                self._specs.progress.set_read_to(name, {})  # offsets of the topic that was replaced
        try:
            check = self._topics.apply_changes(check)
            self._restart_from_beginning(
                check, {topic for name in self._queries for topic in before.topics(name)}
            )
            self._purger.forget_topics(check.lost)
            if check.lost or check.partition_counts != before.partition_counts:
                self._specs.update(check)
            self._topics.remember_topics(check)
        finally:
            for query in readers:
                query.resume()

    def _restart_from_beginning(self, check: TopicCheck, read: set[str]) -> None:
        """Reset the offsets of re-created topics that a query reads."""
        recreated = sorted(check.lost & check.topic_ids.keys())
        for topic in recreated:
            effect = "read from its first record" if topic in read else "local state keeps its contents"
            _log.warning("topic was re-created", topic=topic, effect=effect)
        self._offsets.reset_to_earliest(
            [
                (topic, each)
                for topic in recreated
                if topic in read
                for each in range(check.partition_counts.get(topic, 0))
            ]
        )

    def _observe_progress(self) -> None:
        layout, progress = self._specs.layout, self._specs.progress
        partitions = {name: layout.input_partitions(name) for name in self._queries}
        backlogs = self._read_backlogs_of(partitions)
        has_threads = self._specs.has_threads
        for name in self._queries:
            backlog = backlogs.get(name)
            self._progress_watch.observe(name, backlog, progress, has_threads=has_threads)
            if may_have_unread(backlog, layout.topics(name), layout.partition_counts, self._topics.counts):
                self._input_watch.request_signal(name)

    def _read_backlogs_of(self, partitions: Mapping[str, Sequence[TopicPartition]]) -> Mapping[str, Backlog]:
        """Return query → backlog; queries whose backlog is not known are missing."""
        backlogs = self._read_backlogs(partitions)
        if backlogs is None:  # one partition may be missing: the others are known
            backlogs = {}
            for name, some in partitions.items():
                backlogs |= self._read_backlogs({name: some}) or {}
        return backlogs

    def _read_backlogs(self, partitions: Mapping[str, Sequence[TopicPartition]]) -> dict[str, Backlog] | None:
        if self._cluster_watch.problem:
            return None  # each request would wait for its timeout, and the next topic check for it
        try:
            return dict(self._offsets.read_backlogs(partitions, self._read_by_spark()))
        except KafkaException as error:
            # Each further request would wait for its timeout, too: then the health is observed too late.
            return {} if error.args[0].code() in (*NO_ANSWER, *COORDINATOR_MOVING) else None

    def _purge_repartition_topics(self) -> None:
        layout = self._specs.layout
        try:
            partitions = layout.topic_partitions(layout.repartition_topics)
            self._purger.purge_records(
                processed_offsets(self._offsets.last_committed(partitions), self._read_by_spark())
            )
        except KafkaException as error:
            _log.warning("purge of repartition topics failed", reason=str(error))

    def _read_by_spark(self) -> Offsets:
        """Return the offsets that the next batches start at; partitions without a batch are missing."""
        return {
            partition: offset
            for name in self._queries
            for partition, offset in self._specs.progress.read_to(name).items()
        }


def may_have_unread(
    backlog: Backlog | None, topics: Iterable[str], known: Mapping[str, int], present: Mapping[str, int]
) -> bool:
    """Return whether a query may have to read something that the watch of its input does not notice.

    These are transaction markers, and partitions that were added to `topics`: `known`, the layout, has a
    smaller count of them than `present`. `backlog` is None if no broker answers.
    """
    if backlog is None or backlog.lag != 0:
        return True
    return any(present.get(topic, 0) > known.get(topic, 0) for topic in topics)


def processed_offsets(committed: Offsets, read: Offsets) -> Offsets:
    """Return the offsets before which records are processed, and not read again by Spark.

    A batch that completes a round commits offsets that are ahead of Spark's. Spark would warn of lost data if
    these records were purged before its next batch reads and skips them.
    """
    return {partition: min(offset, read.get(partition, 0)) for partition, offset in committed.items()}
