"""Which Python process owns a task, and how another one passes records to it.

Spark gives a task's records to any of its Python workers. Moving a task requires a new producer and opening
its state. So a worker that gets records of a task sends them to the process that owns it. It takes the
ownership over if the owner processes another task and the records are many, or if they are too many to send.
"""

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from secrets import token_hex
from threading import Lock, Thread
from types import MappingProxyType

import attrs
import structlog

from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.task import PoisonRecordError
from spark_jobs.runtime.worker.gc_pause import paused_gc
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult
from spark_jobs.runtime.worker.refusals import RecordsRefusedError, RefusedRecords
from spark_jobs.runtime.worker.task_batch import OpenTask
from spark_jobs.runtime.worker.task_input import ColumnInput, TaskInput

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


class TaskOwnedError(Exception):
    """The owner of a task neither processed the batch nor released the task in time.

    The batch fails and is tried again: the owner may still commit its part, which is skipped then.
    """


def process_task_batch(
    request: BatchRequest, partition: int, input_: TaskInput, *, tick: bool
) -> BatchResult:
    """Process a task's part of a batch, in this process or in the task's owner; measure the time.

    Raises:
        KafkaException: Kafka fails. Either nothing of the batch is committed or all of it; the next attempt
            finds out which.
        TaskOwnedError: Another process owns the task and does not answer.
    """
    started = time.perf_counter()
    result = _TASK_OWNER.process_or_forward(request, partition, input_, tick=tick)
    return attrs.evolve(result, seconds=time.perf_counter() - started)


@attrs.frozen
class Lease:
    """A task's lease: held until it is released, or until the process dies.

    The file contains the owner's address, for the other processes of the machine.
    """

    _file: int

    @classmethod
    def try_acquire(cls, folder: Path, task: str, owner: str) -> "Lease | None":
        """Return the lease, or None while another process holds it."""
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / f"{task}.lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        lease = cls(file)
        # The folder may be deleted at any time: only the file that others find is a lease.
        if not lease.is_current(folder, task):
            os.close(file)
            return None
        os.ftruncate(file, 0)
        os.pwrite(file, owner.encode(), 0)
        return lease

    def is_current(self, folder: Path, task: str) -> bool:
        """Return whether other processes see this lease; not if the state folder was deleted meanwhile."""
        try:
            return os.path.samestat(os.fstat(self._file), (folder / f"{task}.lease").stat())
        except FileNotFoundError:
            return False

    @staticmethod
    def owner_of(folder: Path, task: str) -> str:
        """Return the owner's address; empty = no owner. An owner that died may still be named."""
        try:
            return (folder / f"{task}.lease").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


@attrs.define
class _Ownership:
    """Whether this process owns a task; `task` is None while another process does."""

    lock: Lock = attrs.field(factory=Lock)
    lease: Lease | None = None
    task: OpenTask | None = None

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
        self._address = ""

    def process_or_forward(
        self, request: BatchRequest, partition: int, input_: TaskInput, *, tick: bool
    ) -> BatchResult:
        ownership = self._ownership(request.task_name(partition))
        with ownership.lock:
            self._release_if_lost(request, partition, ownership)
            if ownership.task is not None:
                # It fails if another process owned the task meanwhile: then a new session reads the offsets.
                with suppress(Exception):
                    return self._process_here(request, partition, ownership, input_, tick=tick)
            result = self._forward_or_acquire(request, partition, ownership, input_, tick=tick)
            return result or self._process_here(request, partition, ownership, input_, tick=tick)

    def release_all(self) -> None:
        """Release the tasks of this process: any other one can own them."""
        for ownership in tuple(self._ownerships.values()):
            with ownership.lock:
                self._release(ownership)

    def _release_if_lost(self, request: BatchRequest, partition: int, ownership: _Ownership) -> None:
        """Release a task whose lease was deleted: another process may own the task, and know newer state."""
        lease = ownership.lease
        if lease is not None and not lease.is_current(request.state_folder, request.task_name(partition)):
            self._release(ownership)

    def _forward_or_acquire(
        self, request: BatchRequest, partition: int, ownership: _Ownership, input_: TaskInput, *, tick: bool
    ) -> BatchResult | None:
        """Return the owner's result, or None when this process holds the lease.

        Asks the owner before each attempt to acquire the lease: an owner releases it only when asked.
        """
        folder, name = request.state_folder, request.task_name(partition)
        sent = input_ if _can_be_sent(input_) else None
        wait = _OwnerWait(name, 0 if sent is None else len(sent))
        while True:
            owner = Lease.owner_of(folder, name)
            if owner not in ("", self._address):
                result = _forward(owner, request, partition, sent, wait, tick=tick)
                if result is not None:
                    return result
            ownership.lease = Lease.try_acquire(folder, name, self._address)
            if ownership.lease is not None:
                return None
            wait.check()
            time.sleep(_RETRY_SECONDS)

    def _process_here(
        self, request: BatchRequest, partition: int, ownership: _Ownership, input_: TaskInput, *, tick: bool
    ) -> BatchResult:
        """Process a batch of a task whose lease this process holds; release the task after a failure."""
        name = request.task_name(partition)
        self._processing.add(name)
        try:
            task = ownership.task
            if task is not None and (task.layout_version != request.layout_version or task.is_slow):
                ownership.close_task()
            if ownership.task is None:
                ownership.task = OpenTask(request, partition)
            try:
                return ownership.task.process_batch(request, input_, tick=tick)
            except RecordsRefusedError as error:
                return _process_without_refused(request, partition, ownership, input_, error, tick=tick)
        except BaseException as error:
            self._release(ownership)
            if isinstance(error, TaskMigrated):
                missing = (error.topic, error.partition, error.num_partitions)
                return BatchResult(partition=partition, missing_partition=missing)
            if isinstance(error, PoisonRecordError):
                return BatchResult(
                    partition=partition, poison_record=str(error), poison_handler=error.handler
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
            if self._process != os.getpid():
                self._listen()
            return self._ownerships.setdefault(name, _Ownership())

    def _listen(self) -> None:
        key = token_hex(16)
        listener = Listener(family="AF_UNIX", authkey=key.encode())
        self._process = os.getpid()
        self._ownerships = {}
        self._processing = set()
        self._address = f"{listener.address}\n{key}"
        Thread(target=self._serve, args=(listener,), name="task-owner", daemon=True).start()

    def _serve(self, listener: Listener) -> None:
        while True:
            try:
                caller = listener.accept()
            except (OSError, EOFError, AuthenticationError):
                continue  # a caller that died, or one without the key
            Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: Connection) -> None:
        with caller, suppress(OSError, EOFError):  # the caller may have died
            request, partition, input_, tick = caller.recv()
            with paused_gc():
                result = self._process_forwarded(request, partition, input_, tick=tick)
                del input_
            caller.send(result)

    def _process_forwarded(
        self, request: BatchRequest, partition: int, input_: TaskInput | None, *, tick: bool
    ) -> BatchResult | None:
        """Return None if the caller has to process the batch: the task is released, or was not open here."""
        ownership = self._ownership(request.task_name(partition))
        with ownership.lock:
            self._release_if_lost(request, partition, ownership)
            # With many records for two tasks, two processes are faster than one.
            is_busy = bool(self._processing) and input_ is not None and len(input_) > _FEW_RECORDS
            if input_ is None or ownership.task is None or is_busy:
                self._release(ownership)
                return None
            try:
                return self._process_here(request, partition, ownership, input_, tick=tick)
            except Exception:  # noqa: BLE001 - the caller processes the batch itself and fails the same way
                return None


def _process_without_refused(
    request: BatchRequest,
    partition: int,
    ownership: _Ownership,
    input_: TaskInput,
    error: RecordsRefusedError,
    *,
    tick: bool,
) -> BatchResult:
    """Process a batch again, until the brokers refuse none of its records; raises the last refusal."""
    refused = RefusedRecords()
    while True:
        refused.add(error)
        ownership.close_task()
        ownership.task = OpenTask(request, partition, refused)
        try:
            return ownership.task.process_batch(request, input_, tick=tick)
        except RecordsRefusedError as next_error:
            error = next_error


class _OwnerWait:
    """The time that a process waits for the owner of a task, after it has sent `records` to it."""

    def __init__(self, task: str, records: int) -> None:
        self._task = task
        self._seconds = _OWNER_TIMEOUT_SECONDS + _SECONDS_PER_RECORD * records
        self._started = time.monotonic()
        self._is_reported = False

    def check(self) -> None:
        """Log a long wait once. Raises `TaskOwnedError` after the timeout."""
        waited = time.monotonic() - self._started
        if waited >= self._seconds:
            raise TaskOwnedError(
                f"another process owns task {self._task} and did not finish its batch within "
                f"{self._seconds:g} s"
            )
        if waited >= _REPORT_AFTER_SECONDS and not self._is_reported:
            self._is_reported = True
            _log.warning("waiting for the owner of a task", task=self._task, seconds=round(waited))


def _forward(
    owner: str,
    request: BatchRequest,
    partition: int,
    input_: TaskInput | None,
    wait: _OwnerWait,
    *,
    tick: bool,
) -> BatchResult | None:
    """Let the owner process `input_`, or release the task; None = process the batch here."""
    address, _, key = owner.partition("\n")
    if not key:
        return None
    try:
        with Client(address, authkey=key.encode()) as connection:
            connection.send((request, partition, input_, tick))
            while not connection.poll(_RETRY_SECONDS):
                wait.check()
            result: BatchResult | None = connection.recv()
            return result
    except (OSError, EOFError):
        return None  # the owner has died


def _can_be_sent(input_: TaskInput) -> bool:
    if isinstance(input_, ColumnInput) and input_.has_columns:
        return input_.size <= _MAX_FORWARDED_BYTES
    return len(input_) <= _MAX_FORWARDED_RECORDS


def _read_only(entries: Mapping[object, object]) -> Mapping[object, object]:
    return MappingProxyType(entries)


ForkingPickler.register(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))
_TASK_OWNER = TaskOwner()
