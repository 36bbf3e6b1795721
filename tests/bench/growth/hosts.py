"""Growth with the number of hosts, whose workers have a limited share of the CPU time of one machine.

Hosts are network namespaces (`tests/runtime/hosts`), so this series requires root.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from headwater.toolchain import ensure_kafka, ensure_spark_jars
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.bench.cpu_time import cpu_seconds, used
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.runtime.comparison import length
from tests.runtime.hosts.cluster import Driver, SparkHosts, new_application, spark_hosts
from tests.runtime.hosts.network import Host, reason_to_skip
from tests.runtime.spark.process_application import ProcessApplication

_HOSTS = (1, 2, 4)
_CORES = 0.2
"""Of each worker's host: so driver, broker and master have enough of two cores, also with four hosts."""
_RECORDS = 400_000
_BATCHES = 20
_PARTITIONS = 4
_WAIT_SECONDS = 1_800.0
_NAME = f"forward and count on hosts with {_CORES} cores, exactly once"


def run(folder: Path, _: Broker) -> Iterator[Figure]:
    """Yield how many records a second are counted with each number of hosts, and the CPU time for them."""
    if reason := reason_to_skip():
        raise OSError(reason)
    for number in sizes("HOSTS", _HOSTS):
        own = folder / f"hosts-{number}"
        own.mkdir(parents=True)
        jars = tuple(map(str, ensure_spark_jars()))
        with spark_hosts(ensure_kafka(), own, jars, number, with_cpu_limits=True) as cluster:
            application = new_application(cluster, "exactly_once_v2", partitions=_PARTITIONS)
            yield from _figures(cluster, application, length(_RECORDS).records)


def _figures(cluster: SparkHosts, application: ProcessApplication, records: int) -> Iterator[Figure]:
    """Measure the second half of the records: the first one is counted without limits."""
    number, host = len(cluster.workers), cluster.network.add("driver")
    application.feed(records // 2)
    with cluster.driver(application, host, max_records=records // _BATCHES) as driver:
        _await(application, driver, records // 2)
        for each in cluster.workers:
            assert each.cpu is not None
            each.cpu.set(_CORES)
        before = application.counted()
        application.feed(records - records // 2)
        workers, drivers = _used(cluster.workers), _used([host])
        started = time.monotonic()
        _await(application, driver, before + records // 2)
        seconds = time.monotonic() - started
        counted = application.counted() - before
        yield _figure("records/s", counted / seconds, number, _NAME)
        million = counted / 1_000_000
        spent = (
            sum(used(old, new) for old, new in zip(workers, _used(cluster.workers), strict=True)) / million
        )
        yield _figure("s", spent, number, f"{_NAME}: CPU time of workers for 1,000,000 records")
        spent = sum(used(old, new) for old, new in zip(drivers, _used([host]), strict=True)) / million
        yield _figure("s", spent, number, f"{_NAME}: CPU time of the driver for 1,000,000 records")


def _await(application: ProcessApplication, driver: Driver, least: int) -> None:
    """Wait until the output topic has so many offsets."""
    found = until(
        lambda: application.topics.written("counted") >= least or driver.process.poll() is not None,
        _WAIT_SECONDS,
    )
    assert found, "too slow"
    assert driver.process.poll() is None, "the driver has ended"


def _used(hosts: Sequence[Host]) -> list[dict[int, float]]:
    """Return the CPU time of each program that was started on the hosts, with its descendants."""
    return [dict(cpu_seconds(pid)) for host in hosts for pid in host.started]


def _figure(unit: str, ours: float, hosts: int, what: str) -> Figure:
    is_rate = unit == "records/s"
    return Figure(
        what=what, unit=unit, ours=ours, is_rate=is_rate, size=hosts, units="hosts", is_per_unit=not is_rate
    )
