"""The task as its operators, stores, sources and sinks see it, with its punctuation schedules."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

from headwater_spark.engine.error_handlers import (
    CheckedOutput,
    ErrorHandlers,
    PoisonRecordError,
    Refusal,
    no_refusal,
)
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.records import (
    UNSET,
    Clock,
    Clocks,
    CurrentRecord,
    InputRecord,
    OutputRecord,
    Value,
)
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.engine.task_state import TaskStores
from headwater_spark.processors import PunctuationType

if TYPE_CHECKING:
    from headwater_spark.engine.key_counts import CountPerKey, DirectSink, WindowCounts


class Schedule:
    """One call of `schedule`. Its next time is a clock of the task, so it outlives the batch."""

    __slots__ = ("_callback", "_interval", "_next", "cancelled")

    def __init__(self, interval_ms: int, next_time: Clock, callback: Callable[[int], None]) -> None:
        self._interval = interval_ms
        self._next = next_time
        self._callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def due(self) -> int:
        return self._next.now

    def start(self, first: int) -> None:
        """Set the first time, unless an earlier batch has set it."""
        if self._next.now == UNSET:
            self._next.now = first

    def call(self, now: int) -> None:
        """Call back once, however many intervals have passed; the next time is a multiple of the interval."""
        due = self._next.now
        self._next.now = due + ((now - due) // self._interval + 1) * self._interval
        self._callback(now)


class Punctuations:
    """The schedules of a task, by the kind of time that they follow."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._schedules: dict[PunctuationType, list[Schedule]] = {kind: [] for kind in PunctuationType}
        self._number_by_node: Counter[str] = Counter()

    def schedules(self, kind: PunctuationType) -> list[Schedule]:
        """Return the schedules of one kind: the list itself, which grows with each call of `schedule`."""
        return self._schedules[kind]

    def schedule(
        self,
        node: str,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        wall_clock_ms: int,
    ) -> Schedule:
        """Add a schedule. A node's schedules are identified by the order in which it adds them."""
        self._number_by_node[node] += 1
        clock = self._clocks.clock(f"{node}/schedule/{self._number_by_node[node]}")
        schedule = Schedule(interval_ms, clock, callback)
        schedule.start(0 if kind is PunctuationType.STREAM_TIME else wall_clock_ms + interval_ms)
        self._schedules[kind].append(schedule)
        return schedule

    def due(self, kind: PunctuationType, now: int) -> Iterator[Schedule]:
        """Yield each schedule that is due at `now`, earliest first; the caller calls it at once.

        Also schedules that a callback has added meanwhile (`PunctuationQueue#maybePunctuate`).
        """
        schedules = self._schedules[kind]
        known = -1
        while len(schedules) != known:
            known = len(schedules)
            due = [schedule for schedule in schedules if not schedule.cancelled and schedule.due <= now]
            for schedule in sorted(due, key=lambda schedule: schedule.due):
                if not schedule.cancelled:
                    yield schedule
                if len(schedules) != known:
                    break


LoggerOf = Callable[[str], Callable[..., None]]
"""Node name → function (event, **fields) that logs a record; `print` and `peek` use it."""


def no_logger(_node: str) -> Callable[..., None]:
    """Return a logger that discards what it is given."""
    return lambda *_, **__: None


class TaskContext:
    """What nodes and stores use while they process records, and the callbacks that they register."""

    def __init__(
        self,
        program: Program,
        partition: int,
        state: BatchedState,
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
        """The largest timestamp of the task's input."""
        self.punctuations = Punctuations(self.clocks)
        self.stores = TaskStores(self, global_stores)
        self._state = state
        self.add_counts: dict[str, CountPerKey] = {}
        """Node → what is called once per key of a batch, if possible, and not the node per record."""
        self.window_counts: dict[str, WindowCounts] = {}
        """Node → what processes a batch in columns, if possible."""
        self.direct_sink: DirectSink | None = None
        """Where updates of windows with a cache go; None = nodes have to process them."""
        self.column_totals: dict[str, object] = {}
        """Node → its cached totals (`cached_aggregate.Totals`): whole columns are aggregated, if possible."""
        self._on_open: dict[str, list[Callable[[], None]]] = {}
        self._on_batch_end: list[Callable[[], None]] = []
        self._on_close: list[Callable[[], None]] = []

    def wall_clock(self) -> int:
        """Return the wall-clock time of the batch, in milliseconds."""
        return self.wall_clock_ms

    def clock(self, name: str) -> Clock:
        return self.clocks.clock(name)

    def overlay(self, name: str) -> Overlay:
        return self._state.store(name)

    def _refused(self, record: InputRecord, topic: str, cause: Exception) -> None:
        self.error_handlers.production_failed(record, topic, cause)

    def flush_failed(self, error: Exception) -> NoReturn:
        """Raise the error that ends the batch: the current record's update left a cache, and failed."""
        if not isinstance(error, PoisonRecordError):
            self.error_handlers.flush_failed(self.current.record, error)
        raise error

    def drop(self, node: str, reason: str) -> None:
        """Count a dropped record (`dropped-records-total`)."""
        self.dropped[node, reason] += 1

    def count_dropped(self) -> int:
        """Return the number of records dropped or skipped since the task was created."""
        return self.dropped.total() + self.error_handlers.skipped

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Schedule:
        return self.punctuations.schedule(node, interval_ms, kind, callback, self.wall_clock_ms)

    def on_open(self, node: str, open_: Callable[[], None]) -> None:
        """Call `open_` before the first batch, parents before children."""
        self._on_open.setdefault(node, []).append(open_)

    def on_batch_end(self, finish: Callable[[], None]) -> None:
        """Call `finish` after the records of each batch, before caches are flushed."""
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
        """Close users' processors, all of them; raise the first error (`StreamTask#closeTopology`)."""
        errors: list[Exception] = []
        for close in self._on_close:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - users' classes raise anything
                errors.append(error)
        if errors:
            raise errors[0]
