"""Aggregations of streams: by key alone, and which of the windowed ones applies."""

from collections.abc import Mapping

from infra.model.behaviors import AggregationKind, StreamAggregate
from infra.model.windows import SessionWindow, SlidingWindow
from spark_jobs.runtime.engine.operators.aggregation import functions_of
from spark_jobs.runtime.engine.operators.cached_aggregate import cached_aggregate, caches_alone
from spark_jobs.runtime.engine.operators.counting import count_fast, counts_fast
from spark_jobs.runtime.engine.operators.interface import OperatorContext, OperatorFactory, Process
from spark_jobs.runtime.engine.operators.materialized import table_store
from spark_jobs.runtime.engine.operators.session_aggregate import session_aggregate
from spark_jobs.runtime.engine.operators.sliding_aggregate import sliding_aggregate
from spark_jobs.runtime.engine.operators.window_aggregate import window_aggregate
from spark_jobs.runtime.engine.records import Headers, Value


def stream_aggregate(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """`KStreamAggregate`, `KStreamReduce` and their windowed kin."""
    match behavior.window:
        case None:
            return _keyed(behavior, context)
        case SessionWindow() as window:
            return session_aggregate(behavior, window, context)
        case SlidingWindow() as window:
            return sliding_aggregate(behavior, window, context)
        case window:
            return window_aggregate(behavior, window, context)


def _keyed(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """Null keys and values are dropped; the result's time is the latest of its records."""
    if behavior.aggregation.kind is AggregationKind.COUNT and counts_fast(behavior, context):
        return count_fast(behavior, context)
    if caches_alone(behavior, context):
        return cached_aggregate(behavior, context)
    functions = functions_of(behavior.aggregation, context)
    store = table_store(behavior.store, context, sends_old=behavior.sends_old)
    get, update, init, add = store.get, store.update, functions.init, functions.add
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, "null key or value")
            return
        known = get(key)
        if known is None:
            old, time = (
                init(),
                timestamp,
            )  # the initial value is the first change's old one, as in Kafka Streams
        else:
            old, time = known
            time = max(time, timestamp)
        total = add(key, value, old)
        update(key, total, old, time, (timestamp, headers))

    return process


FACTORIES: Mapping[type, OperatorFactory] = {StreamAggregate: stream_aggregate}
