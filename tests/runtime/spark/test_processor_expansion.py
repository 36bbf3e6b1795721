"""KIP-287: processors are added while the application runs, on real Spark and Kafka.

The results must equal the results of a run without added processors.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import attrs
import pytest
from pyspark.sql import SparkSession

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.queries.specs import QueryBatches
from headwater_spark.partitioners import linear_partition
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from headwater_spark.worker.messages import BatchResult
from tests.runtime.spark.growing import (
    DOCUMENT,
    KEYS,
    TIMEOUT_SECONDS,
    Growing,
    SteadyOrders,
    new_growing,
)
from tests.runtime.spark.visits import VISITS_DOCUMENT, await_visits, create_visits

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_PRICED_DOCUMENT = (
    DOCUMENT
    + """
  - globalTable: {topic: prices-APP, serdes: {key: string, value: string}, as: prices}
  - join:
      from: orders
      with: prices
      key: "substring_index(value, '|', 1)"
      value: "concat(left, '+', right)"
  - to: {topic: priced-APP}
"""
)
"""Orders are joined with a global table, too."""


@pytest.fixture
def create(
    spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Callable[[int], Growing]:
    """Return a function that creates an application with a number of processors and partitions."""
    return partial(new_growing, spark, kafka.bootstrap_servers, unique("app"), tmp_path)


@pytest.fixture
def growing(create: Callable[[int], Growing]) -> Growing:
    return create(2)


def _process_doubled_partitions(growing: Growing, client: StreamsApplication) -> None:
    """Process orders with 2 and with 4 partitions."""
    growing.name_customers("named")
    client.wait_until_idle()
    growing.order(10)
    growing.await_results(client)
    _double_partitions(growing, client)


def _double_partitions(growing: Growing, client: StreamsApplication) -> None:
    growing.expand(4)
    growing.expand_repartition_topic(4)
    growing.order(10)
    growing.await_results(client)


def _order_until_expanded(growing: Growing, client: StreamsApplication, processors: int) -> None:
    SteadyOrders(growing).write_until(client, lambda: client.processors().processors == processors)


def test_processors_are_added_while_the_application_runs(growing: Growing) -> None:
    """With stores and punctuations of users' processors."""
    create_visits(growing)
    with growing.run(VISITS_DOCUMENT) as client:
        _process_doubled_partitions(growing, client)
        assert client.processors() == ProcessorsStatus(2)
        client.expand_processors(4)
        client.expand_processors(4)  # it is requested already
        _order_until_expanded(growing, client, 4)
        growing.await_results(client)
        await_visits(growing, client)
        status = client.processors()
        assert (status.target, status.phase, status.problems) == (None, ExpansionPhase.IDLE, ())
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.order(10)
        growing.await_results(client)
        await_visits(growing, client)
        assert {part["parallelism"] for part in client.subtopology_status()} == {4}


@attrs.define
class _Results:
    """The results of all tasks, as the driver gets them."""

    found: list[tuple[str, BatchResult]] = attrs.field(factory=list)

    @classmethod
    def of(cls, monkeypatch: pytest.MonkeyPatch) -> "_Results":
        results, report = cls(), QueryBatches.record_results

        def note(spec: QueryBatches, batch: int, found: Sequence[BatchResult]) -> None:
            results.found += [(spec.subtopology, result) for result in found]
            report(spec, batch, found)

        monkeypatch.setattr(QueryBatches, "record_results", note)
        return results

    def restored(self, tasks: Collection[int]) -> int:
        """Return how many records these tasks restored; all of them must have read records."""
        mine = [result for name, result in self.found if name == "0" and result.partition in tasks]
        assert {result.partition for result in mine if result.read} == set(tasks)
        return sum(result.restored for result in mine)


@pytest.mark.soak  # without Spark: `runtime/driver/test_warm_up`
def test_an_expansion_succeeds_if_local_state_cannot_be_written_before_the_cut(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the processor restores its whole state when the folder can be written again."""
    results = _Results.of(monkeypatch)
    with growing.run() as client:
        _process_doubled_partitions(growing, client)
        blocked = growing.folder / "state" / growing.id / "0_2"
        blocked.write_text("not a folder")
        client.expand_processors(4)
        assert until(lambda: client.processors().processors == 4, TIMEOUT_SECONDS), client.processors()
        results.found.clear()
        blocked.unlink()
        growing.order(1)
        growing.await_results(client)
        assert results.restored([2]) > 0
        assert results.restored([3]) == 0


@pytest.mark.soak  # in short: `test_the_example_of_the_kip_runs`
def test_one_processor_is_added_while_the_application_runs(growing: Growing) -> None:
    """2 → 3 processors of 4 partitions and ordinary producers, then 4 as declared; restarts find them.

    Also with a document that declares 2 processors.

    The topic of a global table has more partitions than the inputs: no processor belongs to them.
    """
    growing.topics.create({growing.name("prices"): 16, growing.name("priced"): 4})
    prices = {f"r{each}": f"price {each}" for each in range(5)}
    growing.put("prices", list(prices.items()))
    with growing.run(_PRICED_DOCUMENT) as client:
        _process_doubled_partitions(growing, client)
        client.expand_processors(3)
        _order_until_expanded(growing, client, 3)
        growing.await_results(client)
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.order(10)
        growing.await_results(client)
        assert {part["parallelism"] for part in client.subtopology_status()} == {3}
    with growing.run(_PRICED_DOCUMENT.replace("processors: 2", "processors: 4")) as client:
        _order_until_expanded(growing, client, 4)
        growing.await_results(client)
    with growing.run(_PRICED_DOCUMENT) as client:
        growing.order(5)
        growing.await_results(client)
        assert client.processors() == ProcessorsStatus(4)
        assert {part["parallelism"] for part in client.subtopology_status()} == {4}
    priced = growing.written("priced")
    for key in {key for key, _ in growing.orders}:
        values = [value for each, value in growing.orders if each == key]
        assert sorted(priced[key]) == sorted(f"{value}+{prices[value.partition('|')[0]]}" for value in values)


@pytest.mark.soak  # without Spark: `runtime/driver/test_moves_on_a_broker`
def test_processors_are_removed_while_it_is_stopped_and_added_while_it_runs(growing: Growing) -> None:
    """2 → 4 → 3 → 2 offline, then 4 again; the changelog topics keep 4 partitions."""
    with growing.run() as client:
        _process_doubled_partitions(growing, client)
    growing.move(4)
    with growing.run(DOCUMENT.replace("processors: 2", "processors: 4")) as client:
        growing.order(5)
        growing.await_results(client)
    growing.move(3)
    growing.move(2)
    with growing.run() as client:
        growing.order(5)
        growing.await_results(client)
        assert client.processors() == ProcessorsStatus(2)
        client.expand_processors(4)
        _order_until_expanded(growing, client, 4)
        growing.await_results(client)
    for store in ("counts", "customers", "regions"):
        assert growing.topics.partitions(f"{growing.id}-{store}-changelog") == 4


@pytest.mark.soak  # without Spark: `runtime/driver/test_expansions_on_a_broker`
def test_declared_processors_are_added_after_a_restart(growing: Growing) -> None:
    """Before partitions are added, the application runs with the processors that it has."""
    more = DOCUMENT.replace("processors: 2", "processors: 4")
    with growing.run() as client:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(3)
        growing.await_results(client)
    with growing.run(more) as client:
        assert until(lambda: bool(client.processors().problems), TIMEOUT_SECONDS)
        assert (client.processors().processors, client.processors().target) == (2, 4)
        growing.order(3)
        growing.await_results(client)
        growing.expand(4)
        growing.expand_repartition_topic(4)
        growing.order(3)
        growing.await_results(client)
    with growing.run(more) as client:
        _order_until_expanded(growing, client, 4)
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.order(3)
        growing.await_results(client)
        assert client.processors().target is None


@pytest.mark.parametrize("counts", [(2, 3, 5), pytest.param((10, 15, 18), marks=pytest.mark.soak)])
def test_the_example_of_the_kip_runs(
    create: Callable[[int], Growing], monkeypatch: pytest.MonkeyPatch, counts: tuple[int, int, int]
) -> None:
    """KIP-287: 10 partitions and processors, 15 partitions, 15 processors, 18 partitions; or fewer.

    An expansion is refused before there are partitions, and changes nothing. Nothing is written while
    processors are added: they restore their state before the cut, and none restores anything in its first
    batch.
    """
    first, more, most = counts
    results, growing = _Results.of(monkeypatch), create(first)
    initial = f"static.partitioner.initial.partitions: {first}"
    linear_hash = f"static.partitioner.class: linear-hash\n    {initial}"
    document = DOCUMENT.replace("processors: 2", f"processors: {first}")
    with growing.run(document.replace("statestore", f"{linear_hash}\n    statestore")) as client:
        _check_refusals(client, first, more)
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(3)
        growing.await_results(client)
        assert growing.topics.partitions(f"{growing.id}-counts-changelog") == first
        growing.expand(more)
        growing.expand_repartition_topic(more)
        growing.order(3)
        growing.await_results(client)
        client.expand_processors(more)
        assert until(lambda: client.processors().processors == more, TIMEOUT_SECONDS), client.processors()
        results.found.clear()
        growing.order(1)
        growing.await_results(client)
        tasks = {linear_partition(f"k{each}".encode(), first, more) for each in range(KEYS)}
        assert max(tasks) >= first, "added processors"
        assert results.restored(tasks) == 0
        growing.expand(most)
        growing.expand_repartition_topic(most)
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.order(3)
        growing.await_results(client)
        assert {part["parallelism"] for part in client.subtopology_status()} == {more}
    for store in ("counts", "customers", "regions"):
        assert growing.topics.partitions(f"{growing.id}-{store}-changelog") == more


def _check_refusals(client: StreamsApplication, processors: int, more: int) -> None:
    """Request fewer processors, as many, and more than there are partitions."""
    with pytest.raises(ProblemsError, match=f"cannot have 1 instead of {processors} processors"):
        client.expand_processors(1)
    client.expand_processors(processors)
    assert client.processors() == ProcessorsStatus(processors)
    client.expand_processors(more)
    assert until(lambda: bool(client.processors().problems), TIMEOUT_SECONDS)
    [problem] = client.processors().problems
    assert problem.code is ProblemCode.PROCESSOR_COUNT
    assert f"fewer partitions than {more} processors" in problem.summary
    assert client.processors().target is None
