"""The task as its operators, stores, sources and sinks see it."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn

from headwater_spark.engine.clocks import Clock, Clocks
from headwater_spark.engine.error_handlers import (
    CheckedOutput,
    ErrorHandlers,
    PoisonRecordError,
    Refusal,
    no_refusal,
)
from headwater_spark.engine.key_counts import CountPerKey
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.punctuation import Punctuations, Schedule
from headwater_spark.engine.records import CurrentRecord, InputRecord, OutputRecord, Value
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.engine.task_state import TaskState, TaskStores
from headwater_spark.processors import PunctuationType

LoggerOf = Callable[[str], Callable[..., None]]
"""Node name → function (event, **fields) that logs a record; `print` and `peek` use it."""


def no_logger(_node: str) -> Callable[..., None]:
    """Return a logger that discards what it is given."""
    return lambda *_, **__: None


class TaskContext:
    """What nodes and stores use while they process records, and the callbacks that they register.

    Implements `TaskServices`, `StoreServices` and `SourceAndSinkServices`.
    """

    def __init__(
        self,
        program: Program,
        partition: int,
        state: TaskState,
        global_stores: Mapping[str, Value],
        logger: LoggerOf,
        *,
        refusal: Refusal,
    ) -> None:
        self.program = program
        self.partition = partition
        self.task_id = f"{program.name}_{partition}"
        self.logger = logger
        self.current = CurrentRecord()
        self.outputs: list[OutputRecord] = []
        self.append = append_dead_letter = self.outputs.append
        if refusal is not no_refusal:
            output = CheckedOutput(self.outputs, refusal, self.current, self.wall_clock, self._refused)
            self.append, append_dead_letter = output.append, output.append_dead_letter
        self.error_handlers = ErrorHandlers(program.settings, append_dead_letter)
        self.dropped: Counter[tuple[str, str]] = Counter()
        """(node, reason) → number of records dropped since the task was created."""
        self.wall_clock_ms = 0
        self.record_cache = RecordCache(program.settings.cache_max_bytes)
        self.clocks = Clocks(state.metadata)
        self.stream_time = self.clocks.clock("task")
        self.punctuations = Punctuations(self.clocks)
        self.stores = TaskStores(self, global_stores)
        self._state = state
        self.add_counts: dict[str, CountPerKey] = {}
        """Node → how it adds counts per key."""
        self._on_open: dict[str, list[Callable[[], None]]] = {}
        self._on_batch_end: list[Callable[[], None]] = []
        self._on_close: list[Callable[[], None]] = []

    @property
    def application_id(self) -> str:
        return self.program.application_id

    def wall_clock(self) -> int:
        return self.wall_clock_ms

    def clock(self, name: str) -> Clock:
        return self.clocks.clock(name)

    def overlay(self, name: str) -> Overlay:
        return self._state.store(name)

    def typed_store(self, name: str) -> Value:
        return self.stores.typed(name)

    def is_global_store(self, name: str) -> bool:
        return self.stores.is_global(name)

    def _refused(self, record: InputRecord, topic: str, cause: Exception) -> None:
        self.error_handlers.production_failed(record, topic, cause)

    def flush_failed(self, error: Exception) -> NoReturn:
        """Raise the error that ends the batch: the current record's update left a cache, and failed."""
        if not isinstance(error, PoisonRecordError):
            self.error_handlers.flush_failed(self.current.record, error)
        raise error

    def drop(self, node: str, reason: str) -> None:
        self.dropped[node, reason] += 1

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Schedule:
        return self.punctuations.schedule(node, interval_ms, kind, callback, self.wall_clock_ms)

    # callbacks of nodes

    def on_key_counts(self, node: str, count: CountPerKey) -> None:
        self.add_counts[node] = count

    def on_open(self, node: str, open_: Callable[[], None]) -> None:
        self._on_open.setdefault(node, []).append(open_)

    def on_batch_end(self, finish: Callable[[], None]) -> None:
        self._on_batch_end.append(finish)

    def on_close(self, close: Callable[[], None]) -> None:
        self._on_close.append(close)

    def open_nodes(self) -> None:
        """Initialize users' processors, parents before children."""
        for node in self.program.nodes:
            for open_ in self._on_open.get(node.name, ()):
                open_()

    def end_batch(self) -> None:
        """Call `on_batch_end` callbacks, parents before children: children are built first."""
        for finish in reversed(self._on_batch_end):
            finish()

    def close_nodes(self) -> None:
        """Close users' processors."""
        for close in self._on_close:
            close()
