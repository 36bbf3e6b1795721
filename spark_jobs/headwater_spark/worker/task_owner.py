"""Which Python process of a machine owns a task, and how another one passes records to it.

Spark gives a task's records to any of its Python workers. Moving a task requires a new producer and opening
its state. So a worker that gets records of a task sends them to the process that owns it. It takes the
ownership over if the owner processes another task and the records are many, or if they are too many to send.
Processes of other machines may own the task, too: `state_proof` decides which state is the last one.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import attrs
import structlog

from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import NO_RECORD, InputRecord
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.worker.interpreter import paused_gc
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.owner_socket import OwnerCall, OwnerSocket
from headwater_spark.worker.record_sender import RecordsRefusedError, RefusedRecords
from headwater_spark.worker.slow_batches import SlowBatches
from headwater_spark.worker.state_folders import named_disk_failures
from headwater_spark.worker.state_proof import OutdatedStateError
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import ColumnInput, PartitionedInput, RecordInput, TaskInput
from headwater_spark.worker.task_lease import Lease

_FEW_RECORDS = 2_000
"""Up to this number, the owner processes the records at any time."""
_MAX_FORWARDED_RECORDS = 20_000
"""Records that are no columns: to send as many takes 20 ms, to open a producer takes 60 ms or more."""
_MAX_FORWARDED_BYTES = 64 * 2**20
_OWNER_TIMEOUT_SECONDS = 300.0
"""How long a process waits for the owner of a task. Kafka's default of `max.poll.interval.ms`."""
_SECONDS_PER_RECORD = 0.01
"""How much longer it waits for each record that it has sent: user functions may be slow."""
_REPORT_AFTER_SECONDS = 30.0
_RETRY_SECONDS = 0.05

_log = structlog.get_logger(__name__)
_SLOW_BATCHES = SlowBatches()


class TaskOwnedError(Exception):
    """The owner of a task neither processed the batch nor released the task in time.

    The batch fails and is tried again: the owner may still commit its part, which is skipped then.
    """


def process_task_batch(
    request: BatchRequest, partition: int, input_: TaskInput, *, tick: bool
) -> BatchResult:
    """Process a task's part of a batch, in this process or in the task's owner.

    Raises:
        KafkaException: Kafka fails. Either nothing of the batch is committed or all of it; the next attempt
            finds out which.
        TaskOwnedError: Another process owns the task and does not answer.
    """
    return _TASK_OWNER.process_or_forward(request, partition, input_, tick=tick)


@attrs.frozen(eq=False)
class _Part:
    """A task's part of a batch; `tick`: process it even without records, for wall-clock punctuation."""

    request: BatchRequest
    task: int
    input: TaskInput
    tick: bool

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.request.task_name(self.task)


@attrs.define
class _Ownership:
    """Whether this process owns a task; `task` is None while another process does."""

    lock: Lock = attrs.field(factory=Lock)
    lease: Lease | None = None
    task: OpenTask | None = None

    @contextmanager
    def hold_lock(self, wait: "_OwnerWait") -> Iterator[None]:
        """Hold the lock; raises `TaskOwnedError` if another thread does for too long."""
        while not self.lock.acquire(timeout=_RETRY_SECONDS):
            wait.check()
        try:
            yield
        finally:
            self.lock.release()

    def current_record(self) -> InputRecord:
        """Return the input record that is processed; `NO_RECORD`: it is not known."""
        task = self.task  # another thread calls this
        return NO_RECORD if task is None else task.current_record

    def close_task(self) -> None:
        task, self.task = self.task, None
        if task is not None:
            task.close()


class TaskOwner:
    """The tasks that this process owns, and the socket by which other processes of the machine reach them."""

    def __init__(self) -> None:
        self._ownerships: dict[str, _Ownership] = {}
        self._lock = Lock()
        self._processing: set[str] = set()
        """The tasks whose records this process processes now."""
        self._process = 0
        self._sockets: dict[Path, OwnerSocket] = {}

    def process_or_forward(
        self, request: BatchRequest, partition: int, input_: TaskInput, *, tick: bool
    ) -> BatchResult:
        part = _Part(request, partition, input_, tick)
        sent = input_ if _can_be_sent(input_) else None
        wait = _OwnerWait(part.name, 0 if sent is None else len(sent))
        ownership = self._ownership(part.name)
        with ownership.hold_lock(wait):
            self._release_if_lost(part, ownership)
            if ownership.task is not None:
                # It fails if another process owned the task meanwhile: then a new session reads the offsets.
                with suppress(Exception):
                    return self._process_here(part, ownership)
                wait.begin()
            result = self._forward_or_acquire(part, ownership, sent, wait)
            return result or self._process_here(part, ownership)

    def close(self) -> None:
        """Release the tasks of this process, so that any other process can own them, and accept no calls."""
        for name, ownership in tuple(self._ownerships.items()):
            with ownership.hold_lock(_OwnerWait(name, 0)):
                self._release(ownership)
        with self._lock:
            sockets, self._sockets = self._sockets, {}
        for each in sockets.values():
            each.close()

    def _release_if_lost(self, part: _Part, ownership: _Ownership) -> None:
        """Release a task whose lease or socket was deleted: other processes do not find its owner."""
        lease, folder = ownership.lease, part.request.state_folder
        if lease is None:
            return
        is_named = lease.owner == self._reachable_socket(folder).address
        if not is_named or not lease.is_current(folder, part.name):
            self._release(ownership)

    def _forward_or_acquire(
        self, part: _Part, ownership: _Ownership, sent: TaskInput | None, wait: "_OwnerWait"
    ) -> BatchResult | None:
        """Return the owner's result, or None when this process holds the lease.

        Asks the owner before each attempt to acquire the lease: an owner releases it only when asked. `sent`
        are the records, None: they are too many to send.
        """
        folder, name = part.request.state_folder, part.name
        address = self._reachable_socket(folder).address
        while True:
            owner = Lease.owner_of(folder, name)
            if owner not in ("", address):
                result = _forward_batch(owner, (part.request, part.task, sent, part.tick), wait)
                if result is not None:
                    return result
            ownership.lease = Lease.try_acquire(folder, name, address)
            if ownership.lease is not None:
                return None
            wait.check()
            time.sleep(_RETRY_SECONDS)

    def _process_here(self, part: _Part, ownership: _Ownership) -> BatchResult:
        """Process a batch of a task whose lease this process holds; release the task after a failure."""
        request, name = part.request, part.name
        self._processing.add(name)
        try:
            task = ownership.task
            if task is not None and (task.layout_version != request.layout_version or task.is_slow):
                ownership.close_task()
            with _SLOW_BATCHES.watch_batch(
                f"{request.subtopology}_{part.task}", ownership.current_record, request.state_folder
            ):
                try:
                    return _process_with_latest_state(part, ownership)
                except RecordsRefusedError as error:
                    return _process_without_refused(part, ownership, error)
        except BaseException as error:
            self._release(ownership)
            if isinstance(error, TaskMigrated):
                missing = (error.topic, error.partition, error.num_partitions)
                return BatchResult(partition=part.task, missing_partition=missing)
            if isinstance(error, PoisonRecordError):
                return BatchResult(
                    partition=part.task, poison_record=str(error), poison_handler=error.handler
                )
            raise
        finally:
            self._processing.discard(name)

    @staticmethod
    def _release(ownership: _Ownership) -> None:
        lease, ownership.lease = ownership.lease, None
        try:
            ownership.close_task()
        finally:
            if lease is not None:
                lease.release()

    def _ownership(self, name: str) -> _Ownership:
        with self._lock:
            self._forget_parent()
            return self._ownerships.setdefault(name, _Ownership())

    def _forget_parent(self) -> None:
        """Begin without tasks in a process that was forked from their owner."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._ownerships, self._sockets, self._processing = {}, {}, set()

    def _socket(self, folder: Path) -> OwnerSocket:
        """Return the socket for the applications' state in `folder`, which may be unreachable by now."""
        with self._lock, named_disk_failures(folder):
            if folder not in self._sockets:
                self._sockets[folder] = OwnerSocket(folder, self._answer)
            return self._sockets[folder]

    def _reachable_socket(self, folder: Path) -> OwnerSocket:
        found = self._socket(folder)
        if found.is_reachable:
            return found
        with self._lock:
            if self._sockets.get(folder) is found:
                del self._sockets[folder]
                found.close()
        return self._socket(folder)

    def _answer(self, caller: Connection) -> None:
        request, partition, input_, tick = caller.recv()
        with paused_gc():
            result = self._process_forwarded(request, partition, input_, tick=tick)
            del input_
        caller.send(result)

    def _process_forwarded(
        self, request: BatchRequest, partition: int, input_: TaskInput | None, *, tick: bool
    ) -> BatchResult | None:
        """Return None if the caller has to process the batch: the task is released, or was not open here."""
        part = _Part(request, partition, RecordInput() if input_ is None else input_, tick)
        ownership = self._ownership(part.name)
        with suppress(TaskOwnedError), ownership.hold_lock(_OwnerWait(part.name, 0)):
            self._release_if_lost(part, ownership)
            # With many records for two tasks, two processes are faster than one.
            is_busy = bool(self._processing) and input_ is not None and len(input_) > _FEW_RECORDS
            if input_ is None or ownership.task is None or is_busy:
                self._release(ownership)
                return None
            try:
                return self._process_here(part, ownership)
            except Exception:  # noqa: BLE001 - the caller processes the batch itself and fails the same way
                return None
        return None


def _process_with_latest_state(part: _Part, ownership: _Ownership) -> BatchResult:
    """Process a batch; if the state of the open task is outdated, open the task again."""
    if ownership.task is not None:
        try:
            return _process_part(ownership.task, part)
        except OutdatedStateError:
            ownership.close_task()
    ownership.task = OpenTask(part.request, part.task)
    try:
        return _process_part(ownership.task, part)
    except OutdatedStateError:  # another process has committed since it was opened
        ownership.close_task()
        ownership.task = OpenTask(part.request, part.task)
        return _process_part(ownership.task, part)


def _process_part(task: OpenTask, part: _Part) -> BatchResult:
    return task.process_batch(part.request, part.input, tick=part.tick)


def _process_without_refused(part: _Part, ownership: _Ownership, error: RecordsRefusedError) -> BatchResult:
    """Process a batch again, until the brokers refuse none of its records; raises the last refusal."""
    refused = RefusedRecords()
    while True:
        refused.add(error)
        ownership.close_task()
        ownership.task = OpenTask(part.request, part.task, refused)
        try:
            return _process_part(ownership.task, part)
        except RecordsRefusedError as next_error:
            error = next_error


class _OwnerWait:
    """The time that a process waits for the owner of a task, after it has sent `records` to it."""

    def __init__(self, task: str, records: int) -> None:
        self._task = task
        self._seconds = _OWNER_TIMEOUT_SECONDS + _SECONDS_PER_RECORD * records
        self._is_reported = False
        self.begin()

    def begin(self) -> None:
        """Begin to count: this process has not waited so far, but processed the batch itself."""
        self._started = time.monotonic()

    def check(self) -> None:
        """Log a long wait once. Raises `TaskOwnedError` after the timeout."""
        waited = time.monotonic() - self._started
        if waited >= _REPORT_AFTER_SECONDS and not self._is_reported:
            self._is_reported = True
            _log.warning("waiting for the owner of a task", task=self._task, seconds=round(waited))
        if waited >= self._seconds:
            raise TaskOwnedError(
                f"another process owns task {self._task} and did not finish its batch within "
                f"{self._seconds:g} s"
            )


def _forward_batch(
    owner: str, request: tuple[BatchRequest, int, TaskInput | None, bool], wait: _OwnerWait
) -> BatchResult | None:
    """Let the owner process a batch, or release the task; None = process the batch here."""
    if "\n" not in owner:
        return None
    with OwnerCall(owner, request) as call:
        while not call.has_ended(_RETRY_SECONDS):
            wait.check()
    result: BatchResult | None = call.result()
    return result


def _can_be_sent(input_: TaskInput) -> bool:
    if isinstance(input_, PartitionedInput) or (isinstance(input_, ColumnInput) and input_.has_columns):
        return input_.size <= _MAX_FORWARDED_BYTES
    return len(input_) <= _MAX_FORWARDED_RECORDS


def _read_only(entries: Mapping[object, object]) -> Mapping[object, object]:
    return MappingProxyType(entries)


ForkingPickler.register(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))
_TASK_OWNER = TaskOwner()
