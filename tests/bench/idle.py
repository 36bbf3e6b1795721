"""What a running application costs while no records arrive, and how soon it processes the next one."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from spark_jobs.runtime.driver.states import ClientState
from tests.bench.figures import Figure
from tests.pulumi.cluster import Cluster
from toolchain import PulumiToolchain
from toolchain.broker import Broker
from toolchain.broker.readiness import until

_SUBTOPOLOGIES = 5
_PARTITIONS = 2
_WARM_UP_SECONDS, _BROKER_SECONDS, _SECONDS = 15.0, 20.0, 60.0
_PAUSE_SECONDS = 2.5
_RECORDS = 15
_GOAL_PERCENT = 5.0
_PERCENT = "% of a core"
_TIMEOUT_SECONDS = 120
_MAP = '  - mapValues: {value: "upper(value)"}\n'
_DOCUMENT = (
    "application: {id: idle}\ntopology:\n"
    "  - stream: {topic: idle-in, serdes: {key: string, value: string}}\n"
    + "  - repartition: {serdes: {key: string, value: string}}\n".join([_MAP] * _SUBTOPOLOGIES)
    + "  - to: {topic: idle-out, serdes: {key: string, value: string}}\n"
)


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    servers = broker.bootstrap_servers
    for topic in ("idle-in", "idle-out"):
        Cluster(servers).create(topic, _PARTITIONS)
    time.sleep(_WARM_UP_SECONDS)
    begin = _processor_seconds(broker.pid)
    time.sleep(_BROKER_SECONDS)
    alone = _used(begin, _processor_seconds(broker.pid)) / _BROKER_SECONDS * 100
    yield Figure(what="CPU of the broker without applications", unit=_PERCENT, ours=alone)
    with _application(folder, servers) as process, _sink(servers) as sink:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        for number in range(_PARTITIONS):
            _seconds_of_record(producer, sink, number)
        time.sleep(_WARM_UP_SECONDS)
        before = _processor_seconds(process.pid), _processor_seconds(broker.pid)
        time.sleep(_SECONDS)
        after = _processor_seconds(process.pid), _processor_seconds(broker.pid)
        for program, start, end in zip(("driver", "broker"), before, after, strict=True):
            yield Figure(
                what=f"idle, {_SUBTOPOLOGIES} sub-topologies: CPU of the {program}",
                unit=_PERCENT,
                ours=_used(start, end) / _SECONDS * 100,
                goal=_GOAL_PERCENT,
            )
        taken = []
        for number in range(_RECORDS):
            time.sleep(_PAUSE_SECONDS)
            taken.append(_seconds_of_record(producer, sink, number))
        what = f"latency p50: {_SUBTOPOLOGIES} maps in a row, after {_PAUSE_SECONDS:g} s without records"
        yield Figure(what=what, unit="s", ours=statistics.median(taken))


@contextmanager
def _application(folder: Path, servers: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield the process of an application that is RUNNING."""
    document, log = folder / "idle.yaml", folder / "idle.log"
    document.write_text(_DOCUMENT)
    command = [sys.executable, "-m", "infra.cli", "run", str(document), "--bootstrap-server", servers]
    command += ["--checkpoint", str(folder / "checkpoint"), "--state-dir", str(folder / "state")]
    command += ["--log-format", "json", "--master", "local[2]"]
    with (
        log.open("wb") as lines,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=lines) as process,
    ):
        try:
            assert until(lambda: _is_running(log), _TIMEOUT_SECONDS), log.read_text()
            yield process
        finally:
            process.terminate()
            process.wait(_TIMEOUT_SECONDS)


def _is_running(log: Path) -> bool:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return any(fields.get("new") == ClientState.RUNNING.value for fields in lines)


@contextmanager
def _sink(servers: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "idle-sink", "fetch.wait.max.ms": 5_000})
    consumer.assign([TopicPartition("idle-out", each, 0) for each in range(_PARTITIONS)])
    try:
        yield consumer
    finally:
        consumer.close()


def _seconds_of_record(producer: Producer, sink: Consumer, number: int) -> float:
    """Write a record; return how long it took until its result was read."""
    started = time.perf_counter()
    producer.produce("idle-in", b"value", b"key", partition=number % _PARTITIONS)
    producer.flush()
    result = sink.poll(_TIMEOUT_SECONDS)
    assert result is not None, "no result"
    assert result.error() is None, result.error()
    return time.perf_counter() - started


def _processor_seconds(root: int) -> Mapping[int, float]:
    """Return the CPU time of a process and its descendants, each with its children that have ended."""
    fields = {int(each.name): _stat(each) for each in Path("/proc").iterdir() if each.name.isdigit()}
    tree = [root]
    for pid in tree:
        tree += [child for child, stat in fields.items() if stat and int(stat[1]) == pid]
    tick = 1 / os.sysconf("SC_CLK_TCK")
    return {pid: sum(map(int, fields[pid][11:15])) * tick for pid in tree if fields.get(pid)}


def _used(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the CPU time between two calls of `_processor_seconds`.

    Spark ends a Python worker that was idle for a minute, and its parent does not wait for it, so the kernel
    forgets its CPU time. What it has used until the first call must not be subtracted from the others' time.
    """
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def _stat(process: Path) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none if the process has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
