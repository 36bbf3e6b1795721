"""Memory of a task whose state grows to 10 million keys, with a limit enforced by the system.

`HEADWATER_BENCH_KEYS` is the number of keys. RLIMIT_DATA limits the heap of the process. The state file is
mapped and shared with the page cache; the system evicts its pages when memory is short.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import LocalState
from tests.bench.figures import Figure
from tests.runtime.topology_runner import NO_CACHE, programs

COUNT = """
- stream: {topic: in, serdes: {key: string, value: string}}
- groupByKey:
- count: {materialized: counts}
- toStream:
- to: {topic: out}
"""
_KEYS = 10_000_000
_STRIDE = 7_368_787
"""Coprime to the number of keys, so that the keys are spread over the whole state."""
_BATCH = 100_000
_SHOWN = 2
_LIMIT = 1 << 30
_MIB = 1 << 20
_SAMPLE_SECONDS = 0.02


def run(*_: object) -> Iterator[Figure]:
    """Measure in a new process. Raises `CalledProcessError` if it reaches the limit."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield Figure(**json.loads(line))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


@attrs.define
class Peak:
    """Samples the size of the heap continuously, as it is largest during a commit."""

    bytes_: int = 0
    _ended: threading.Event = attrs.field(factory=threading.Event)

    def watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.bytes_ = max(self.bytes_, resident("RssAnon"))

    def end(self) -> None:
        self._ended.set()


def _measure(keys: int) -> Iterator[Figure]:
    """Yield the memory beyond that of the empty process."""
    resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT, _LIMIT))
    before = resident("RssAnon")
    peak = Peak()
    watch = threading.Thread(target=peak.watch, daemon=True)
    watch.start()
    with tempfile.TemporaryDirectory(prefix="headwater-memory-") as folder:
        for done in _filled(Path(folder), keys):
            on_disk = bytes_on_disk(Path(folder))
            yield _figure(f"{done:,} keys, heap after a batch", resident("RssAnon") - before)
            yield _figure(f"{done:,} keys, heap at most", peak.bytes_ - before, _LIMIT)
            yield _figure(f"{done:,} keys, mapped part of the state file", resident("RssFile"))
            yield _figure(f"{done:,} keys, state file on disk", on_disk)
    peak.end()
    watch.join()


def _figure(what: str, bytes_: int, limit: int | None = None) -> Figure:
    return Figure(what=what, unit="MiB", ours=bytes_ / _MIB, goal=None if limit is None else limit / _MIB)


def _filled(folder: Path, keys: int) -> Iterator[int]:
    """Process one record per key; yield the number of keys from time to time."""
    state = LocalState(folder)
    task = Task(programs(COUNT, NO_CACHE, {})[0], 0, state)
    batches = -(-keys // _BATCH)
    for number in range(batches):
        first = number * _BATCH
        process(task, state, records(first, min(first + _BATCH, keys), keys), number)
        if (number + 1) % max(1, batches // _SHOWN) == 0:
            yield (number + 1) * _BATCH
    state.close()


def process(task: Task, state: LocalState, batch: list[InputRecord], number: int) -> list[OutputRecord]:
    """Process a batch and apply its changes to the state; return its output."""
    output = task.process(batch, number)
    state.prepare(number)
    state.commit(number)
    return output


def records(first: int, end: int, keys: int) -> list[InputRecord]:
    """Return the records with the offsets from `first` to `end`; a key comes again after `keys` records."""
    return [
        ("in", 0, at, 1_700_000_000_000 + at, b"key-%08d" % (at * _STRIDE % keys), b"value", ())
        for at in range(first, end)
    ]


def bytes_on_disk(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*"))


def resident(kind: str) -> int:
    """Return bytes of a line of /proc/self/status. Raises `StopIteration` if there is none (not Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))


if __name__ == "__main__":
    for figure in _measure(int(os.environ.get("HEADWATER_BENCH_KEYS", _KEYS))):
        print(json.dumps(attrs.asdict(figure)), flush=True)  # noqa: T201 - read by `run`
