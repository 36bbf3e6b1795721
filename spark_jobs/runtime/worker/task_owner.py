"""A task's part of a batch, done where the task is at home.

Spark hands a task's records to any of its Python workers. Moving a task costs a new producer and the opening
of its state, so a worker that gets a few records of a task that another one has lets that one process them;
for many records it takes the task over.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import ForkingPickler
from secrets import token_hex
from threading import Lock, Thread
from types import MappingProxyType

import attrs

from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.task import PoisonRecordError
from spark_jobs.runtime.worker.lease import Lease, read_holder, take
from spark_jobs.runtime.worker.messages import Outcome, WorkOrder
from spark_jobs.runtime.worker.task_batch import OwnedTask
from spark_jobs.runtime.worker.task_input import TaskInput

_FEW = 2_000
_PATIENCE_SECONDS = 120.0


def work(order: WorkOrder, partition: int, input_: TaskInput, *, tick: bool) -> Outcome:
    """Do it, here or at the task's home.

    Raises `KafkaException` when Kafka fails: then nothing of the batch holds, or all of it, and the next
    attempt finds out which.
    """
    started = time.perf_counter()
    outcome = _HOME.work(order, partition, input_, tick=tick)
    return attrs.evolve(outcome, seconds=time.perf_counter() - started)


@attrs.define
class _Place:
    """A task's place in this process; `owned` is None while it is elsewhere."""

    lock: Lock = attrs.field(factory=Lock)
    lease: Lease | None = None
    owned: OwnedTask | None = None


class _Home:
    """The tasks that this process has, and how other processes of the machine reach them."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._lock = Lock()
        self._process = 0
        self._holder = ""

    def work(self, order: WorkOrder, partition: int, input_: TaskInput, *, tick: bool) -> Outcome:
        task = order.task(partition)
        place = self._place(task)
        with place.lock:
            if place.owned is None:
                holder = read_holder(order.state_folder, task)
                away = None
                if holder != self._holder:
                    away = _elsewhere(holder, order, partition, input_, tick=tick)
                if away is not None:
                    return away
            was_owned = place.owned is not None
            try:
                return self._here(order, partition, place, input_, tick=tick)
            except _Fatal as fatal:
                return fatal.outcome
            except Exception:
                if not was_owned:
                    raise
                # Another machine may have had the task meanwhile: a new session knows what holds.
                return self._here(order, partition, place, input_, tick=tick)

    def _here(
        self, order: WorkOrder, partition: int, place: _Place, input_: TaskInput, *, tick: bool
    ) -> Outcome:
        try:
            if place.owned is not None and place.owned.edition != order.edition:
                self._leave(place)
            if place.owned is None:
                place.lease = place.lease or take(order.state_folder, order.task(partition), self._holder)
                place.owned = OwnedTask(order, partition)
            return place.owned.work(order, input_, tick=tick)
        except BaseException as error:
            self._leave(place)
            if isinstance(error, TaskMigrated):
                wanted = (error.topic, error.partition, error.num_partitions)
                raise _Fatal(Outcome(partition=partition, migrated=wanted)) from None
            if isinstance(error, PoisonRecordError):
                raise _Fatal(Outcome(partition=partition, poison=str(error))) from None
            raise

    def _leave(self, place: _Place) -> None:
        owned, lease = place.owned, place.lease
        place.owned = place.lease = None
        try:
            if owned is not None:
                owned.close()
        finally:
            if lease is not None:
                lease.release()

    def _place(self, task: str) -> _Place:
        with self._lock:
            if self._process != os.getpid():
                self._listen()
            return self._places.setdefault(task, _Place())

    def _listen(self) -> None:
        key = token_hex(16)
        listener = Listener(family="AF_UNIX", authkey=key.encode())
        self._process = os.getpid()
        self._places = {}
        self._holder = f"{listener.address}\n{key}"
        Thread(target=self._serve, args=(listener,), name="task-home", daemon=True).start()

    def _serve(self, listener: Listener) -> None:
        while True:
            try:
                caller = listener.accept()
            except (OSError, EOFError):
                continue  # a caller that died, or one without the key
            Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: Connection) -> None:
        with caller, suppress(OSError, EOFError):  # a caller that has died waits for no answer
            order, partition, input_, tick = caller.recv()
            caller.send(self._done_for_another(order, partition, input_, tick=tick))

    def _done_for_another(
        self, order: WorkOrder, partition: int, input_: TaskInput | None, *, tick: bool
    ) -> Outcome | None:
        """Return None where the caller has to do it: the task is let go, or was not here any more."""
        place = self._place(order.task(partition))
        with place.lock:
            if input_ is None or place.owned is None:
                self._leave(place)
                return None
            try:
                return self._here(order, partition, place, input_, tick=tick)
            except _Fatal as fatal:
                return fatal.outcome
            except Exception:  # noqa: BLE001 - the caller tries it itself and meets whatever it was
                return None


class _Fatal(Exception):  # noqa: N818 - carries an outcome out
    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def _elsewhere(
    holder: str, order: WorkOrder, partition: int, input_: TaskInput, *, tick: bool
) -> Outcome | None:
    """Have the task's home do it if the records are few, else let go; None = it is to be done here."""
    address, _, key = holder.partition("\n")
    if not key:
        return None
    try:
        with Client(address, authkey=key.encode()) as home:
            home.send((order, partition, input_ if len(input_) <= _FEW else None, tick))
            return home.recv() if home.poll(_PATIENCE_SECONDS) else None
    except (OSError, EOFError):
        return None  # it has died


def _frozen(entries: Mapping[object, object]) -> Mapping[object, object]:
    return MappingProxyType(entries)


ForkingPickler.register(MappingProxyType, lambda mapping: (_frozen, (dict(mapping),)))
_HOME = _Home()
