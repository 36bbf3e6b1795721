"""A client that adds processors on a real broker, without Spark and without queries."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

import attrs

from headwater.kafka import Connection
from headwater.model.problems import Problem
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.processor_expansion.expansion import ProcessorExpansion
from headwater_spark.driver.processor_expansion.warm_up import WarmUpJobs
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.topic_check import TopicCheck
from headwater_spark.engine.records import TopicPartition
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult, warm_up

_TIMEOUT_SECONDS = 120.0


@attrs.define
class Query:
    """A query of a process that processes nothing. The first `busy` attempts to hold it meet a batch."""

    busy: int = 0

    def hold(self, seconds: float) -> bool:
        self.busy -= 1
        return seconds > 0 and self.busy < 0

    def forget_commits(self) -> None: ...
    def release(self, committed: object = None) -> None: ...
    def request_hold(self) -> None: ...
    def cancel_hold(self) -> None: ...


@attrs.define
class Specs:
    """Knows all topics; `most_partitions` is the largest number of partitions that it shows."""

    _check: TopicCheck
    most_partitions: int = 1_000
    counted: int = 0
    """How often the partition counts were read."""

    @property
    def layout(self) -> "Specs":
        return self

    @property
    def partition_counts(self) -> Mapping[str, int]:
        self.counted += 1
        return {
            topic: min(count, self.most_partitions) for topic, count in self._check.partition_counts.items()
        }

    def input_partitions(self, subtopology: str) -> Sequence[TopicPartition]:
        counts = self._check.partition_counts
        return [
            (topic, each)
            for part in self._check.compiled.subtopologies
            if str(part.id) == subtopology
            for topic in part.sources
            for each in range(counts[topic])
        ]

    def update(self, check: TopicCheck) -> None:
        self._check = check


@attrs.define
class LocalJobs:
    """Runs warm-ups in this process, for so many seconds each; 0 = one chunk of records."""

    state_folder: Path
    seconds: float = 0.0

    def start_workers(self, _tasks: int, _: Event) -> str | None: ...

    def run(self, request: WarmUpRequest, _: Event) -> WarmUpResult:
        return warm_up(request, self.seconds)


@attrs.frozen
class _NoJobs:
    """Restores nothing."""

    state_folder: Path = Path("unused")

    def start_workers(self, _tasks: int, _: Event) -> str | None: ...

    def run(self, request: WarmUpRequest, _: Event) -> WarmUpResult:
        return WarmUpResult(done=len(request.tasks))


@attrs.define
class ExpandingClient:
    """The expansions of an application whose queries do not run."""

    expansion: ProcessorExpansion
    specs: Specs
    queries: defaultdict[str, Query]
    layout_changes: Lock

    @classmethod
    def of(
        cls,
        text: str,
        connection: Connection,
        *,
        busy: int = 0,
        jobs: WarmUpJobs | None = None,
        on_errors: Callable[[Sequence[Problem]], None] | None = None,
    ) -> "ExpandingClient":
        queries: defaultdict[str, Query] = defaultdict(lambda: Query(busy))
        document = load_text(text, "app.yaml").documents[0]
        topics = ApplicationTopics(document, connection)
        specs, layout_changes = Specs(topics.prepare()), Lock()
        new = ProcessorExpansion(
            topics=topics,
            connection=connection,
            programs=check_runnable(document).programs,
            specs=specs,  # type: ignore[arg-type]
            queries=queries,
            layout_changes=layout_changes,
            on_errors=on_errors or _fail,
            warm_up_jobs=jobs or _NoJobs(),
        )
        new.complete_interrupted()
        new.started()
        return cls(new, specs, queries, layout_changes)

    def expand(self, processors: int) -> None:
        """Expand to this number; wait until it is reached or refused."""
        self.expansion.request(processors, ClientState.RUNNING)
        self.run_until(lambda: self.expansion.status.target is None)

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Execute expansions until the condition is true."""
        with self._running():
            assert until(condition, _TIMEOUT_SECONDS), self.expansion.status

    @contextmanager
    def expanding(self, processors: int) -> Iterator[None]:
        """Expand to this number in another thread, inside the block."""
        self.expansion.request(processors, ClientState.RUNNING)
        with self._running():
            yield

    @contextmanager
    def _running(self) -> Iterator[None]:
        stopping = Event()
        thread = Thread(target=self.expansion.run, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()


def _fail(problems: object) -> None:
    raise AssertionError(problems)
