"""The function that Spark's Python workers run for a batch.

Each worker imports this module, so it imports few others of the driver.
"""

import json
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame

from headwater.model.offset_metadata import StateVersion
from headwater_spark.driver.queries.known_commits import KnownCommits
from headwater_spark.driver.states import THREAD_NOTE
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import Offsets
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.spark_internals.python_tasks import (
    BATCH_PROPERTY,
    map_in_arrow,
    prepare_arrow_function,
    worker_stream,
)
from headwater_spark.worker.interpreter import paused_gc
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.state_proof import boot_seconds
from headwater_spark.worker.task_input import COLUMNS, TOPIC, input_sizes
from headwater_spark.worker.task_owner import process_task_batch
from headwater_spark.worker.task_rows import FIELDS, TaskRows, require_all_rows, split_by_task, unpack_records

RESULT_SCHEMA = "result string"
_END_OFFSETS_KEY = "headwater.ends"
_VERSIONS_KEY = "headwater.versions"
_THREADS_KEY = "headwater.threads"
ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Versions = Mapping[int, StateVersion]


def encode_results(results: Iterable[BatchResult]) -> pa.RecordBatch:
    """Return a row of `RESULT_SCHEMA` for each result."""
    return result_rows([json.dumps(attrs.asdict(result)) for result in results])


def decode_result(line: str) -> BatchResult:
    """Return the result of a row."""
    fields = json.loads(line)
    missing, held_back = fields.pop("missing_partition"), fields.pop("held_back")
    version, committed = fields.pop("state_version"), fields.pop("committed")
    read_bytes = fields.pop("read_bytes")
    return BatchResult(
        **fields,
        missing_partition=tuple(missing) if missing else None,
        held_back=tuple(map(tuple, held_back)),
        state_version=StateVersion(**version) if version else None,
        committed=tuple(map(tuple, committed)),
        read_bytes=tuple(map(tuple, read_bytes)),
    )


def raise_failures(results: Iterable[BatchResult]) -> None:
    """Raise the first failure of a task, if there is one."""
    for result in results:
        if result.poison_record is not None:
            raise PoisonRecordError(result.poison_record, result.poison_handler)
    for result in results:
        if result.missing_partition is not None:
            raise TaskMigrated(*result.missing_partition)


def result_rows(results: Sequence[str]) -> pa.RecordBatch:
    """Return a row for each result. `pyarrow.array` would import pandas, for half a second in each worker."""
    texts = [result.encode() for result in results]
    ends = array("i", accumulate(map(len, texts), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    return pa.RecordBatch.from_arrays([column], names=["result"])


class KnownVersions:
    """The states of a query's tasks after its last batch, as far as the driver knows them."""

    def __init__(self) -> None:
        self._versions: Versions = {}

    def begin_batch(self) -> Versions:
        """Return task → version. None is known until all results arrive: a failed batch commits tasks."""
        known, self._versions = self._versions, {}
        return known

    def end_batch(self, known: Versions, results: Iterable[BatchResult]) -> None:
        """Keep the versions of `results`, and the versions of tasks that were not part of the batch."""
        found = {**known, **{result.partition: result.state_version for result in results}}
        self._versions = {task: version for task, version in found.items() if version is not None}

    def forget(self) -> None:
        """Know no version any more: others may have committed."""
        self._versions = {}


class TaskFunction:
    """The function that Spark's workers run, for one query; only the query's thread calls it.

    A prepared call is kept as long as the request stays the same, one for each kind of rows: a batch may have
    a second Spark job with ticks. The batch's end offsets and the tasks' versions differ each time; they are
    passed as properties of the Spark job.
    """

    def __init__(self) -> None:
        self.versions = KnownVersions()
        self.commits = KnownCommits()
        self._prepared: dict[tuple[bool, bool], tuple[BatchRequest, Column]] = {}
        """(Whether rows are shuffled, whether they are packed) → the last request, and its call."""

    def run(
        self,
        rows: DataFrame,
        batch: int,
        request: BatchRequest,
        threads: tuple[str, ...],
        *,
        shuffled: bool,
        packed: bool = False,
        place: Callable[[DataFrame], DataFrame] | None = None,
    ) -> list[BatchResult]:
        """Process `rows` in the workers; return the tasks' results.

        The rows have the columns of `worker.task_input`; if `packed`, the fields of `worker.task_rows`.
        Spark's task i runs on stream thread i, modulo their number, and on the executor that `place` chooses.
        """
        call = self._prepared_call(request, shuffled=shuffled, packed=packed)
        context = rows.sparkSession.sparkContext
        context.setLocalProperty(_END_OFFSETS_KEY, encode_end_offsets(request, batch))
        known = self.versions.begin_batch()
        request = attrs.evolve(request, versions=known)
        context.setLocalProperty(_VERSIONS_KEY, encode_versions(request, batch, time.time()))
        context.setLocalProperty(_THREADS_KEY, json.dumps(threads))
        results = map_in_arrow(rows, call)
        if place is not None:
            results = place(results)
        found = [decode_result(row.result) for row in results.collect()]
        self.versions.end_batch(known, found)
        self.commits.add(found)
        return found

    def _prepared_call(self, request: BatchRequest, *, shuffled: bool, packed: bool) -> Column:
        constant = attrs.evolve(request, end_offsets={}, client_at=0.0)
        prepared = self._prepared.get((shuffled, packed))
        if prepared is None or prepared[0] != constant:
            columns = [name for name in COLUMNS if request.row_topic is None or name != TOPIC]
            function = _arrow_function(constant, shuffled=shuffled, packed=packed)
            call = prepare_arrow_function(function, RESULT_SCHEMA, FIELDS if packed else columns)
            prepared = self._prepared[shuffled, packed] = constant, call
        return prepared[1]

    def forget(self) -> None:
        """Know neither versions nor commits any more: others may have committed."""
        self.versions.forget()
        self.commits.forget()


def encode_end_offsets(request: BatchRequest, batch: int) -> str:
    """Return the end offsets of a batch, with the application, sub-topology and batch that they belong to."""
    ends = [[*partition, end] for partition, end in request.end_offsets.items()]
    return json.dumps([request.application, request.subtopology, batch, ends])


def decode_end_offsets(text: str | None, request: BatchRequest, batch: str | None) -> Offsets:
    """Return the end offsets, or none if they belong to another batch.

    Without them the committed offsets may lie before transaction markers, which only affects the lag.
    """
    ends = _decode_owned(text, request, batch) or ()
    return {(topic, partition): end for topic, partition, end in ends}


def encode_versions(request: BatchRequest, batch: int, now: float) -> str:
    """Return the tasks' versions and the time, with what `encode_end_offsets` returns in addition.

    The last number is how many seconds ago the client was active for certain.
    """
    versions = [[task, each.number, each.batch_id] for task, each in request.versions.items()]
    age = boot_seconds() - request.client_at
    return json.dumps([request.application, request.subtopology, batch, [now, versions, age]])


@attrs.frozen
class Known:
    """What the driver knew when it sent a batch, at `at` seconds since 1970.

    `versions` is task → version. Until `client_age` seconds before, the client was active for certain.
    """

    at: float = 0.0
    versions: Versions = attrs.field(factory=dict)
    client_age: float = 0.0


def decode_versions(text: str | None, request: BatchRequest, batch: str | None) -> Known:
    """Return what `encode_versions` was given; nothing of another batch."""
    found = _decode_owned(text, request, batch)
    if found is None:
        return Known()
    known_at, versions, client_age = found
    return Known(known_at, {task: StateVersion(number, id_) for task, number, id_ in versions}, client_age)


def _decode_owned(text: str | None, request: BatchRequest, batch: str | None) -> Any:  # noqa: ANN401 - of JSON
    """Return the last item, or None if it belongs to another batch."""
    if text is None:
        return None
    *owner, found = json.loads(text)
    return found if [*map(str, owner)] == [request.application, request.subtopology, batch] else None


def _arrow_function(constant: BatchRequest, *, shuffled: bool, packed: bool) -> ArrowFunction:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        request = _request_of_job(constant)
        with paused_gc():
            task_of = None if request.processors is None else request.task_of
            received = require_all_rows(batches, worker_stream())
            if packed:
                received = unpack_records(received, with_topic=request.row_topic is None)
            tasks = split_by_task(received, request.row_topic, task_of, shuffled=shuffled)
            thread = _thread_of_task()
            try:
                results = [
                    _process_rows(request, partition, rows, thread)
                    for partition, rows in sorted(tasks.items())
                ]
            except Exception as error:
                error.add_note(f"{THREAD_NOTE}{thread}")  # Spark passes on the traceback only
                raise
            del tasks
        if results:
            yield encode_results(results)

    return run


def _process_rows(request: BatchRequest, partition: int, rows: TaskRows, thread: str) -> BatchResult:
    read_bytes = tuple(input_sizes(rows.input))  # before the columns are released
    result = process_task_batch(request, partition, rows.input, tick=rows.tick)
    return attrs.evolve(result, thread=thread, read_bytes=read_bytes)


def _request_of_job(constant: BatchRequest) -> BatchRequest:
    """Return the request with the end offsets and versions of this Spark job.

    Without versions, the tasks read what is committed. So it is in a second attempt: the first one may have
    committed. So it is, too, if the driver sent them long ago: this machine may have been stopped since then.
    """
    context = TaskContext.get()
    if context is None:
        return constant
    batch = context.getLocalProperty(BATCH_PROPERTY)
    ends = decode_end_offsets(context.getLocalProperty(_END_OFFSETS_KEY), constant, batch)
    known = decode_versions(context.getLocalProperty(_VERSIONS_KEY), constant, batch)
    age = time.time() - known.at
    sent_at = boot_seconds() - max(age, 0.0)
    is_late = abs(age) > constant.proof_seconds
    return attrs.evolve(
        constant,
        end_offsets=ends,
        versions={} if context.attemptNumber() or is_late else known.versions,
        versions_at=sent_at,
        client_at=0.0 if is_late else sent_at - known.client_age,
    )


def _thread_of_task() -> str:
    """Return the name of the stream thread that this Spark task runs on."""
    context = TaskContext.get()
    text = context.getLocalProperty(_THREADS_KEY) if context is not None else None
    threads = json.loads(text) if text else [""]
    return str(threads[context.partitionId() % len(threads)]) if context is not None else ""
