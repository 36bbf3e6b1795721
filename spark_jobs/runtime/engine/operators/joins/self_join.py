"""A stream joined with itself, over one window store (`KStreamKStreamSelfJoin`)."""

from collections.abc import Mapping

from infra.model.behaviors import StreamSelfJoin
from spark_jobs.runtime.engine.operators.interface import OperatorContext, OperatorFactory, Process
from spark_jobs.runtime.engine.records import Headers, Value
from spark_jobs.runtime.engine.stores.windows import WindowBytes


def stream_self_join(behavior: StreamSelfJoin, context: OperatorContext) -> Process:
    """Joins a record with earlier ones as the left side, then as the right one, and once with itself.

    The order is that of an inner join of two streams with the same records.
    """
    window = behavior.window
    before, after = window.before_ms, window.after_ms
    retention = before + after + window.grace_ms
    joined = context.expression(behavior.value, "left", "right", "key")
    fetch = context.store(behavior.store, WindowBytes).fetch_range
    forward, task, name, observed = context.forward, context.task, context.node.name, context.clock()

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            task.drop(name, "null key or value")
            return
        observed.now = max(observed.now, timestamp)
        for time, other in list(fetch(key, max(0, timestamp - before), max(0, timestamp + after))):
            forward(key, joined(value, other, key), max(timestamp, time), headers)
        meets_itself = timestamp > observed.now - retention + 1
        for time, other in list(fetch(key, max(0, timestamp - after), max(0, timestamp + before))):
            if meets_itself and time > timestamp:
                meets_itself = False
                forward(key, joined(value, value, key), timestamp, headers)
            forward(key, joined(other, value, key), max(timestamp, time), headers)
        if meets_itself:
            forward(key, joined(value, value, key), timestamp, headers)

    return process


FACTORIES: Mapping[type, OperatorFactory] = {StreamSelfJoin: stream_self_join}
