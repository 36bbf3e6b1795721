"""Users' processor classes as operators (`headwater_spark.processors`)."""

from collections.abc import Callable, Mapping
from inspect import isfunction

from headwater.model.behaviors import RunProcessor
from headwater_spark.engine.operators.interface import (
    NotRunnableError,
    OperatorContext,
    OperatorFactory,
    Process,
)
from headwater_spark.engine.records import NO_RECORD, Headers, Value
from headwater_spark.engine.serdes.plain import equal_in_java
from headwater_spark.processors import Cancellable, FunctionProcessor, PunctuationType, Record, RecordMetadata


class TaskProcessorContext:
    """The `headwater_spark.processors.ProcessorContext` of one node."""

    def __init__(self, context: OperatorContext, *, fixed_key: bool = False, forwards: bool = True) -> None:
        self._context = context
        self._task = context.task
        self._current = context.task.current
        self._fixed_key = fixed_key
        self._forwards = forwards
        self.key: Value = None
        """The key of the current record, which `processValues` must not change."""

    @property
    def application_id(self) -> str:
        return self._task.program.application_id

    @property
    def task_id(self) -> str:
        return self._task.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        record = self._current.record
        return None if record is NO_RECORD else RecordMetadata(*record[:3])

    def forward(self, record: Record, child: str | None = None) -> None:
        if not self._forwards:
            raise RuntimeError(f"{self._context.node.name} cannot forward from here")
        if self._fixed_key and not equal_in_java(record.key, self.key):
            raise ValueError(f"{self._context.node.name} is a processValues: it must not change the key")
        target = self._context.forward if child is None else self._child(child)
        current = self._current
        before = current.context
        current.context = (record.timestamp, record.headers, current.record)
        try:
            target(record.key, record.value, record.timestamp, record.headers)
        finally:  # the processor may catch the error, and continue
            current.context = before

    def state_store(self, name: str) -> Value:
        if name not in self._context.node.stores and not self._task.stores.is_global(name):
            raise KeyError(f"{self._context.node.name} is not connected to a store {name}")
        return self._task.stores.typed_store(name)

    def schedule(
        self,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
    ) -> Cancellable:
        if interval_ms < 1:
            raise ValueError("the interval must be at least 1 ms")

        def punctuate(timestamp: int) -> None:
            current = self._current
            before, current.record, current.context = current.record, NO_RECORD, (timestamp, (), NO_RECORD)
            try:
                callback(timestamp)
            finally:
                current.record, current.context = before, None

        return self._task.schedule(self._context.node.name, interval_ms, kind, punctuate)

    def current_stream_time_ms(self) -> int:
        return self._task.stream_time.now

    def current_system_time_ms(self) -> int:
        return self._task.wall_clock()

    def _child(self, name: str) -> Process:
        try:
            return self._context.children[name]
        except KeyError:
            raise ValueError(f"{self._context.node.name} has no child {name}") from None


def run_processor(behavior: RunProcessor, context: OperatorContext) -> Process:
    """`process`, `processValues`, `addProcessor`."""
    own = TaskProcessorContext(context, fixed_key=behavior.values_only)
    handle = _start_processor(behavior.processor_class, context, own).process
    current = context.task.current

    def process(
        key: Value,
        value: Value,
        timestamp: int,
        headers: Headers,
        node_name: str = context.node.name,  # noqa: ARG001 - shows in the stack which node runs (`slow_batches`)
    ) -> None:
        before = current.context
        current.context = (timestamp, headers, current.record)
        own.key = key
        handle(Record(key, value, timestamp, headers))
        current.context = before

    return process


def run_global(class_name: str, context: OperatorContext) -> Process:
    """Build the processor that writes a global store; it has no children."""
    return run_processor(RunProcessor(class_name), context)


Transform = Callable[[Value, Value, int, Headers], Value]
"""(key, value, timestamp, headers) → value; writes to stores are logged with timestamp and headers."""


def value_transformer(class_name: str | None, context: OperatorContext) -> Transform:
    """Return the function of a new transformer instance."""
    own = TaskProcessorContext(context, forwards=False)
    transform: Callable[[Value, Value], Value] = _start_processor(class_name, context, own).transform
    current = context.task.current

    def call(
        key: Value,
        value: Value,
        timestamp: int,
        headers: Headers,
        node_name: str = context.node.name,  # noqa: ARG001 - as in `run_processor`
    ) -> Value:
        before, current.context = current.context, (timestamp, headers, current.record)
        result = transform(key, value)
        current.context = before
        return result

    return call


def _start_processor(class_name: str | None, context: OperatorContext, own: TaskProcessorContext) -> Value:
    """Return an instance that is initialized before the first batch, and closed with the task."""
    if class_name is None:
        raise NotRunnableError(f"{context.node.name} has no class: the document does not contain it")
    loaded = context.task.program.load(class_name)
    instance = FunctionProcessor(loaded) if isfunction(loaded) else loaded()
    context.task.on_open(context.node.name, lambda: instance.init(own))
    context.task.on_close(instance.close)
    return instance


FACTORIES: Mapping[type, OperatorFactory] = {RunProcessor: run_processor}
