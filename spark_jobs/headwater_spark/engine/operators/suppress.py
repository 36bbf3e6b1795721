"""`suppress`: buffers the changes of a table (`KTableSuppressProcessorSupplier`)."""

from collections.abc import Callable, Mapping

from headwater.model.behaviors import TableSuppress
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.buffers import SuppressBytes


class BufferFullError(Exception):
    """The buffer is full and must not emit early (`shutDownWhenFull`): the application stops."""


def suppress(behavior: TableSuppress, context: OperatorContext) -> Process:
    """Emit the oldest changes that are due; if the buffer exceeds its limit, emit early or stop.

    With `untilWindowCloses`, the time of a change is its window's end, and deletions are not emitted.
    """
    buffer = context.store(behavior.store, SuppressBytes)
    observed = context.clock()
    current = context.task.current
    wait, until_close = behavior.wait_ms, behavior.until_window_closes
    over = _limit(behavior, buffer)
    emit = _emission(buffer, until_close, context)
    name = context.node.name

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        observed.now = max(observed.now, timestamp)
        topic, partition, offset = current.record[:3]
        time = key.end if until_close else timestamp
        buffer.put(time, key, change[:2], (timestamp, offset, topic, partition, headers))
        expired = observed.now - wait
        while buffer.records and buffer.min_time <= expired:
            emit()
        while over is not None and over():
            if behavior.shut_down_when_full:
                raise BufferFullError(
                    f"{name} buffers {buffer.records} records, {buffer.size} bytes; "
                    f"allowed: {behavior.max_records or 'any'} records, {behavior.max_bytes or 'any'} bytes"
                )
            emit()

    return process


def _limit(behavior: TableSuppress, buffer: SuppressBytes) -> Callable[[], bool] | None:
    records, size = behavior.max_records, behavior.max_bytes
    if records is None and size is None:
        return None
    return lambda: (
        (records is not None and buffer.records > records) or (size is not None and buffer.size > size)
    )


def _emission(buffer: SuppressBytes, drops_deletions: bool, context: OperatorContext) -> Callable[[], None]:  # noqa: FBT001
    current, forward = context.task.current, context.forward

    def emit() -> None:
        key, (new, old), (timestamp, offset, topic, partition, headers) = buffer.oldest()
        if new is not None or not drops_deletions:
            before = current.record
            current.record = (topic, partition, offset, timestamp, None, None, headers)
            forward(key, (new, old, True), timestamp, headers)
            current.record = before
        # after forwarding: until then, readers of the table get the prior value
        buffer.drop_oldest()

    return emit


FACTORIES: Mapping[type, OperatorFactory] = {TableSuppress: suppress}
