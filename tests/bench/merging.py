"""Memory of a worker for records that two tasks wrote to a repartition topic, merged in both ways.

`python -m tests.bench.merging` prints the peak of the heap (`RssAnon`) beyond the empty process, for some
sizes of values. Each line is measured in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.task import Task
from headwater_spark.worker import record_processing
from headwater_spark.worker.interleaving import TASK_HEADER
from headwater_spark.worker.interpreter import paused_gc
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.record_processing import process_input
from headwater_spark.worker.task_input import COLUMNS, ColumnInput
from tests.bench.memory import COUNT, Peak, resident
from tests.runtime.topology_runner import CACHED, NO_CACHE, programs

_RECORDS, _KEYS, _WRITERS = 450_000, 5_000, 2
_ROW_RECORDS, _ROW_BYTES = 8_192, 4 << 20
"""A row with packed records, as `spark_internals.packing` limits it."""
_SIZES = (20, 200, 500, 1_000)
_MB = 1_000_000
_SETTINGS: dict[str, EngineSettings] = {"an update per record": NO_CACHE, "with a cache": CACHED}


def _items(kind: pa.DataType, count: int, size: int, data: bytes) -> pa.Array:
    ends = (np.arange(count + 1) * size).astype(np.int32)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _batch(first: int, count: int, writer: bytes, size: int) -> pa.RecordBatch:
    """Return `count` records of a writer from an offset on, as unpacked from a row."""
    number = np.arange(first, first + count)
    at = number % (_RECORDS // _WRITERS)
    keys = np.char.mod("key-%08d", at * 7_919 % _KEYS).astype("S12").tobytes()
    values = np.random.default_rng(first).integers(97, 122, count * size, dtype=np.uint8).tobytes()
    header = TASK_HEADER.encode()
    fields = [
        _items(pa.string(), count, len(header), header * count),
        _items(pa.binary(), count, len(writer), writer * count),
    ]
    headers = pa.StructArray.from_arrays(fields, ["key", "value"])
    columns = [
        pa.repeat(pa.scalar(0, pa.int32()), count),
        pa.array(number),
        pa.array(1_700_000_000_000 + at),
        _items(pa.binary(), count, 12, keys),
        _items(pa.binary(), count, size, values),
        pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), headers),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS[1:]))


def _input(file: Path, size: int) -> ColumnInput:
    """Return the records of the writers, one writer after the other, as a worker receives them."""
    at_once = min(_ROW_RECORDS, _ROW_BYTES // (size + 27))
    share = _RECORDS // _WRITERS
    batches = (
        _batch(writer * share + first, min(at_once, share - first), b"%d" % writer, size)
        for writer in range(_WRITERS)
        for first in range(0, share, at_once)
    )
    with file.open("wb") as output:
        first = next(batches)
        with pa.ipc.new_stream(output, first.schema) as stream:
            for batch in chain([first], batches):
                stream.write_batch(batch)
    with file.open("rb") as source, pa.ipc.open_stream(source) as stream:
        return ColumnInput(("in", 0), list(stream))


def _measure(size: int, cache: str, *, in_columns: bool) -> dict[str, object]:
    record_processing._MOST_BYTES = sys.maxsize if in_columns else 0  # instead of what the records decide
    record_processing._MOST_BYTES_PER_RECORD = sys.maxsize
    with tempfile.TemporaryDirectory(prefix="headwater-merging-") as folder:
        state = LocalState(Path(folder, "state"))
        task = Task(programs(COUNT, _SETTINGS[cache], {})[0], 0, state)
        before = resident("RssAnon")
        input_ = _input(Path(folder, "rows"), size)
        received = resident("RssAnon") - before
        peak = Peak()
        watch = threading.Thread(target=peak.watch, daemon=True)
        watch.start()
        started = time.process_time()
        with paused_gc():
            outputs = process_input(task, input_, frozenset({"in"}), 1_800_000_000_000, in_columns=True)
            written = sum(1 for _ in outputs)
            state.prepare(0)
            state.commit(0)
        seconds = time.process_time() - started
        peak.end()
        watch.join()
        state.close()
    return {
        "value bytes": size,
        "count": cache,
        "merged": "in columns" if in_columns else "one by one",
        "input, MB": received // _MB,
        "peak, MB": (peak.bytes_ - before) // _MB,
        "written": written,
        "CPU, s": round(seconds, 2),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        given, cached, way = sys.argv[1:]
        print(json.dumps(_measure(int(given), cached, in_columns=way == "columns")), flush=True)  # noqa: T201 - the result
    else:
        for each in _SIZES:
            for settings in _SETTINGS:
                for merging in ("records", "columns"):
                    command = [sys.executable, "-m", "tests.bench.merging", str(each), settings, merging]
                    subprocess.run(command, check=True)
