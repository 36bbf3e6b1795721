"""KIP-287: a second client runs while the first one adds processors, and does not know of it.

The clients have no permission to notice each other: otherwise the second one waits.

Every record is processed once, by the processor that has the state of its key.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import attrs
import pytest
from pyspark.sql import SparkSession

from headwater.model.problems import ProblemCode
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.failures import RestartPolicy
from headwater_spark.driver.queries.specs import QueryBatches
from headwater_spark.driver.states import ClientState
from headwater_spark.engine.records import Offsets
from headwater_spark.worker.messages import BatchRequest, BatchResult
from tests.runtime.spark.applications import do_not_notice_each_other
from tests.runtime.spark.growing import TIMEOUT_SECONDS, Growing, SteadyOrders, new_growing

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]
_HELD = "1"
"""The sub-topology behind the repartition topic."""


@pytest.fixture
def growing(spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Growing:
    return new_growing(spark, kafka.bootstrap_servers, unique("app"), tmp_path)


@contextmanager
def _running(growing: Growing) -> Iterator[StreamsApplication]:
    """Run a client that has processed orders with 2 processors and 4 partitions."""
    with growing.run() as client:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(5)
        growing.await_results(client)
        growing.expand(4)
        growing.expand_repartition_topic(4)
        growing.order(5)
        growing.await_results(client)
        yield client


@attrs.define(eq=False)
class _StaleBatches:
    """What the tasks of one client do. From `hold` on, a batch is sent to the tasks only after `release`."""

    client: StreamsApplication
    held: set[str] = attrs.field(factory=set)
    results: list[BatchResult] = attrs.field(factory=list)
    """Of batches that were sent to the tasks before `release`."""
    late: list[BatchResult] = attrs.field(factory=list)
    """Of batches, or steps of them, that were sent to the tasks after `release`."""
    _late_batches: set[tuple[str, int]] = attrs.field(factory=set)
    _holding: Event = attrs.field(factory=Event)
    _released: Event = attrs.field(factory=Event)

    @classmethod
    def of(cls, client: StreamsApplication, monkeypatch: pytest.MonkeyPatch) -> "_StaleBatches":
        batches = cls(client)
        request, report = QueryBatches.create_request, QueryBatches.record_results

        def held_request(spec: QueryBatches, batch: int, *end_offsets: Offsets) -> BatchRequest:
            made = request(spec, batch, *end_offsets)
            if spec.progress is client.progress:
                batches.note_request(spec.subtopology, batch)
            return made

        def noted_report(spec: QueryBatches, batch: int, found: Sequence[BatchResult]) -> None:
            if spec.progress is client.progress:
                is_late = (spec.subtopology, batch) in batches._late_batches
                (batches.late if is_late else batches.results).extend(found)
            report(spec, batch, found)

        monkeypatch.setattr(QueryBatches, "create_request", held_request)
        monkeypatch.setattr(QueryBatches, "record_results", noted_report)
        return batches

    def note_request(self, subtopology: str, batch: int) -> None:
        if subtopology == _HELD and self._holding.is_set():
            self.held.add(subtopology)
            assert self._released.wait(TIMEOUT_SECONDS)
        if self._released.is_set():
            self._late_batches.add((subtopology, batch))

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._holding.set()
        try:
            yield
        finally:
            self._released.set()


def test_a_stale_client_commits_nothing_after_processors_were_added(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topic check is too late. One of its batches begins before the cut, and is processed after it."""
    do_not_notice_each_other(monkeypatch)
    with _running(growing) as client:
        stale = growing.another_client(
            "stale", check_interval_seconds=3600, restarts=RestartPolicy(max_failures=6)
        )
        batches, orders = _StaleBatches.of(stale, monkeypatch), SteadyOrders(growing)
        stale.start()
        try:
            orders.write_until(client, lambda: any(result.read for result in batches.results))
            with batches.hold():
                orders.write_until(client, lambda: bool(batches.held))
                client.expand_processors(4)
                orders.write_until(client, lambda: client.processors().processors == 4)
                assert not stale.state.is_final, stale.problems
            orders.write_until(client, lambda: stale.state.is_final)
        finally:
            stale.close()
        assert batches.held == {_HELD}
        assert not [result for result in batches.late if result.read or result.written]
        assert stale.state is ClientState.ERROR
        assert {problem.code for problem in stale.problems} == {ProblemCode.PROCESSOR_COUNT}
        assert all("start this one again" in problem.fix for problem in stale.problems)
        growing.await_results(client)
    with attrs.evolve(growing, folder=growing.folder / "stale").run() as again:
        assert again.processors().processors == 4
        growing.order(3)
        growing.await_results(again)


@pytest.mark.soak  # without Spark: `runtime/driver/test_topic_check`
def test_a_client_that_checks_its_topics_stops_while_another_one_adds_processors(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    do_not_notice_each_other(monkeypatch)
    with _running(growing) as client:
        other = growing.another_client("other")
        other.start()
        try:
            assert until(lambda: other.state is ClientState.RUNNING, TIMEOUT_SECONDS), other.problems
            growing.order(3)
            client.expand_processors(4)
            SteadyOrders(growing).write_until(
                client, lambda: client.processors().processors == 4 and other.state.is_final
            )
        finally:
            other.close()
        assert {problem.code for problem in other.problems} == {ProblemCode.PROCESSOR_COUNT}
        growing.await_results(client)
