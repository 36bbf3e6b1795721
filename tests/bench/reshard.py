"""Measure a reshard: `python -m tests.bench.reshard KEYS --processes 1 --tasks 2`, on its own broker.

Each option may be repeated: all ways move the same entries, one after the other, as commands. `--tasks` is
the number of Spark tasks, with a local master that has as many cores.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import click
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.toolchain.broker import Broker
from headwater.toolchain.kafka import ensure_kafka
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.bench.cpu_time import own_seconds
from tests.runtime.spark.kafka_topics import Topics

_TIME = 1_760_000_000_000
_VALUE = b"v" * 100
_SAMPLE_SECONDS = 0.1


@click.command()
@click.argument("keys", type=int)
@click.option("--before", default=4, show_default=True, help="The partition count before the reshard.")
@click.option("--after", default=6, show_default=True, help="The partition count after it.")
@click.option("--processes", type=int, multiple=True, help="Move the entries in so many processes.")
@click.option("--tasks", type=int, multiple=True, help="Move the entries in so many tasks of Spark.")
def main(keys: int, before: int, after: int, processes: Sequence[int], tasks: Sequence[int]) -> None:
    """Print how long it takes to give a store with KEYS entries of 100 bytes more partitions."""
    ways = {f"{number} processes": ["--processes", str(number)] for number in processes}
    ways |= {
        f"{number} tasks": ["--spark", "--master", f"local[{number},4]", "--tasks", str(number)]
        for number in tasks
    }
    load = os.getloadavg()[0]
    click.echo(f"{keys:,} keys, {before} to {after} partitions, load of the machine at the start {load:.1f}")
    with TemporaryDirectory() as folder, Broker(ensure_kafka(), Path(folder, "kafka")) as broker:
        broker.start()
        for index, (way, options) in enumerate((ways or {"default": []}).items()):
            application = f"measured{index}"
            document = _create_application(broker.bootstrap_servers, application, keys, before, Path(folder))
            command = [sys.executable, "-m", "headwater.cli", "reshard", str(document), *options]
            command += ["--partitions", f"{application}.orders={after}"]
            command += ["--bootstrap-server", broker.bootstrap_servers]
            click.echo(f"{way}: {_measure(command)}")


@attrs.define
class _Usage:
    """The CPU time and the memory of a process and its descendants, sampled while they run."""

    seconds: dict[int, float] = attrs.field(factory=dict)
    peaks: dict[str, dict[int, int]] = attrs.field(factory=lambda: {"python": {}, "java": {}})
    """Program → process → its largest resident memory in bytes."""

    def sample(self, root: int) -> None:
        for pid, seconds in own_seconds(root).items():
            self.seconds[pid] = max(seconds, self.seconds.get(pid, 0.0))
            with suppress(OSError, StopIteration):
                program = "java" if "java" in Path(f"/proc/{pid}/comm").read_text() else "python"
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
                self.peaks[program][pid] = peak

    def most(self, program: str) -> float:
        """Return the largest memory of a process in MiB."""
        return max(self.peaks[program].values(), default=0) / (1 << 20)


def _measure(command: Sequence[str]) -> str:
    """Run the command; return how long it took, its CPU time and its memory, and when each step began."""
    usage, steps, began = _Usage(), list[str](), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=lambda: steps.extend(_steps(process.stderr or (), began)))
        reader.start()
        while process.poll() is None:
            usage.sample(process.pid)
            time.sleep(_SAMPLE_SECONDS)
        seconds = time.monotonic() - began
        reader.join()
    assert process.returncode == 0, "\n".join(steps)
    figures = f"{seconds:.1f} s, {sum(usage.seconds.values()):.1f} s of CPU"
    memory = f"at most {usage.most('python'):.0f} MiB in a process of Python"
    memory += f", {usage.most('java'):.0f} MiB in Java" if usage.peaks["java"] else ""
    return "\n  ".join([f"{figures}, {memory}", *steps])


def _steps(lines: Iterator[str] | Sequence[str], began: float) -> Iterator[str]:
    for line in lines:
        yield f"{time.monotonic() - began:6.1f} s {line.strip()}"


def _create_application(servers: str, application: str, keys: int, partitions: int, folder: Path) -> Path:
    """Create the topics of a stopped application whose store has `keys` entries; return its document."""
    source, changelog = f"{application}.orders", f"{application}-totals-changelog"
    topics = Topics(servers)
    topics.create({source: partitions})
    topics.create({changelog: partitions}, {"cleanup.policy": "compact"})
    _write_entries(servers, changelog, keys, partitions)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": application})
    offsets = [TopicPartition(source, each, 0) for each in range(partitions)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    steps = [{"stream": {"topic": source}}, {"groupByKey": {}}, {"count": {"materialized": "totals"}}]
    document = folder / f"{application}.json"
    document.write_text(json.dumps({"application": {"id": application}, "topology": steps}))
    return document


def _write_entries(servers: str, topic: str, keys: int, partitions: int) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    for number in range(keys):
        key = b"customer %09d" % number
        while True:
            try:
                partition = default_partition(key, partitions)
                producer.produce(topic, _VALUE, key, partition, timestamp=_TIME + number)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


if __name__ == "__main__":
    main()
