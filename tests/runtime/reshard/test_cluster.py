"""Reshards on a standalone cluster of Spark: executors, workers, drivers and the broker fail."""

import json
import logging
import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.readiness import until
from tests.runtime.hosts.cluster import SparkHosts, spark_hosts
from tests.runtime.hosts.network import Host, reason_to_skip
from tests.runtime.reshard.cluster_reshard import ClusterReshard, Fault
from tests.runtime.reshard.compared_applications import Compared, all_stores, batches, random_steps
from tests.runtime.reshard.stopped_application import KEYS, StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

_log = logging.getLogger(__name__)
_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]
_SERIES = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "3"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1"))
_BROKER_SESSION_MS = 20_000
_FAULTS, _FEW_FAULTS = 8, 3
_PASS_SECONDS = 600.0
_SECONDS = 8.0
"""The next fault happens after this time at most, if tasks run."""
_PASSES = (
    ("reading the changelog topics", 1),
    ("deleting an interrupted copy of", 1),
    ("copying entries of", 1),
    ("checking entries of", 1),
    ("deleting copied entries of", 1),
    ("checking entries of", 2),
)
"""What the command prints when a pass begins, and how often it has been printed then."""
_WRITING = ("copying entries of", "deleting copied entries of")
_MANY_KEYS = tuple(b"key %d" % each for each in range(20_000))
"""The transactions of their entries take long enough to be noticed."""


@pytest.fixture(scope="module")
def hosts(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparkHosts, Host]]:
    """Return a cluster, and a host for drivers."""
    folder = tmp_path_factory.mktemp("cluster")
    with spark_hosts(kafka_distribution, folder, (), broker_session_ms=_BROKER_SESSION_MS) as cluster:
        yield cluster, cluster.network.add("driver")


Create = Callable[..., tuple[StoppedApplication, ClusterReshard]]


@pytest.fixture
def create(hosts: tuple[SparkHosts, Host], unique: Callable[[str], str], tmp_path: Path) -> Create:
    cluster, host = hosts

    def created(
        draw: random.Random, keys: Sequence[bytes] = KEYS
    ) -> tuple[StoppedApplication, ClusterReshard]:
        app = StoppedApplication(cluster.servers, Topics(cluster.servers), unique("stopped"), keys=keys)
        app.create()
        file = tmp_path / "app.json"
        file.write_text(app.text())
        return app, ClusterReshard(cluster, host, file, {app.source: 5}, draw)

    return created


def test_python_processes_of_a_killed_executor_that_continue_later_write_nothing(create: Create) -> None:
    """They are paused while they copy entries, and continue while the copy is repeated or later.

    `test_spark_passes` has such tasks without Spark.
    """
    _cause_in_passes(create, Fault.ZOMBIE, _PASSES[2:3])


@pytest.mark.parametrize("fault", [each for each in Fault if each.is_of_executors])
def test_a_fault_in_each_pass_does_not_end_the_command(create: Create, fault: Fault) -> None:
    _cause_in_passes(create, fault, _PASSES)


def _cause_in_passes(create: Create, fault: Fault, passes: Sequence[tuple[str, int]]) -> None:
    """Reshard, and cause the fault once in each of the passes; check that the command succeeds.

    If a pass is over before the fault can happen, the fault happens in the same pass over the next topic.
    """
    draw = random.Random(fault.name)  # noqa: S311 - the same hosts in each run
    app, reshard = create(draw, _MANY_KEYS)
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    process = reshard.start()

    def has_ended() -> bool:
        reshard.end_due_faults()
        return process.poll() is not None

    for text, number in passes:
        least = number

        def is_reached(text: str = text) -> bool:
            return has_ended() or reshard.output().count(text) >= least  # noqa: B023 - called in this iteration

        def is_caused(text: str = text) -> bool:
            assert until(is_reached, _PASS_SECONDS), reshard.output()[-6000:]
            return reshard.cause_in_pass(fault, process, text, writes=text in _WRITING)

        while not is_caused():
            assert not has_ended(), reshard.output()[-6000:]
            least = reshard.output().count(text) + 1
    assert until(has_ended, _PASS_SECONDS), reshard.output()[-6000:]
    assert process.returncode == 0, reshard.output()[-6000:]
    reshard.end_faults()
    app.check(before, waiting)


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SERIES))
@pytest.mark.parametrize("is_of_executors", [True, False])
def test_entries_are_complete_after_faults(create: Create, seed: int, is_of_executors: bool) -> None:  # noqa: FBT001
    draw = random.Random(seed)  # noqa: S311 - the same series in each run
    app, reshard = create(draw)
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    reshard.tasks = draw.randrange(1, 6)
    reshard.run(_drawn_faults(draw, _FEW_FAULTS, is_of_executors=is_of_executors), _SECONDS)
    _log.info("seed %d: %d executions, faults: %s", seed, reshard.executions, reshard.caused)
    assert reshard.caused, "the command has ended before each fault"
    app.check(before, waiting)


def _drawn_faults(draw: random.Random, number: int, *, is_of_executors: bool) -> Sequence[Fault]:
    """Return faults in random order; unless they are of executors, at least one is not."""
    others = [each for each in Fault if not each.is_of_executors]
    found = draw.choices([each for each in Fault if each.is_of_executors or not is_of_executors], k=number)
    if not is_of_executors:
        found[draw.randrange(number)] = draw.choice(others)
    return found


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SERIES))
@pytest.mark.parametrize("is_of_executors", [True, False])
@pytest.mark.oracle
def test_state_is_complete_after_a_series_of_faults(
    hosts: tuple[SparkHosts, Host],
    unique: Callable[[str], str],
    tmp_path: Path,
    seed: int,
    is_of_executors: bool,  # noqa: FBT001
) -> None:
    """Faults of executors and workers do not end the command; after others, it is run again.

    The judge is an application of Kafka Streams that had the new counts from the start. Both are started
    again, and process a second batch.
    """
    cluster, host = hosts
    draw = random.Random(seed)  # noqa: S311 - the same series in each run
    names = ("orders", "customers", "contracts")
    before = {topic: draw.randrange(1, 5) for topic in names}
    after = {topic: count + draw.randrange(1, 4) for topic, count in before.items()}
    for counts in (before, after):
        counts["payments"] = counts["orders"]
    config = {"processing.guarantee": "exactly_once_v2"} if seed % 2 else {}
    steps = all_stores() if seed % 3 == 0 else random_steps(seed)
    compared = Compared(cluster.servers, Topics(cluster.servers), unique, steps, before, after, config)
    first, second = islice(batches(before, keys=60, size=400, seed=seed), 2)
    compared.process(first)
    file = tmp_path / "app.json"
    file.write_text(json.dumps(compared.json(compared.moved)))
    reshard = ClusterReshard(
        cluster,
        host,
        file,
        {f"{compared.moved}.{topic}": count for topic, count in after.items()},
        draw,
        tasks=draw.randrange(1, 6),
    )
    reshard.run(_drawn_faults(draw, _FAULTS, is_of_executors=is_of_executors), _SECONDS)
    _log.info("seed %d: %d executions, faults: %s", seed, reshard.executions, reshard.caused)
    assert reshard.caused, "the command has ended before each fault"
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
