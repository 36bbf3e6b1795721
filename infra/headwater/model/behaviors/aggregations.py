"""Behaviors of aggregations: of the records of a stream, or of the changes of a table."""

from enum import Enum

import attrs

from headwater.model.windows import Window


class AggregationKind(Enum):
    COUNT = "count"
    REDUCE = "reduce"
    AGGREGATE = "aggregate"


@attrs.frozen
class Aggregation:
    """The functions: `add` and `remove` over `total`, `value`, `key`; `merge` over `left`, `right`, `key`."""

    kind: AggregationKind
    init: str | None = None
    add: str | None = None
    remove: str | None = None
    merge: str | None = None


@attrs.frozen
class StreamAggregate:
    """`KStreamAggregate`, `KStreamReduce`; with `window` also the window, sliding and session variants."""

    store: str
    aggregation: Aggregation
    window: Window | None = None
    emit_on_close: bool = False
    sends_old: bool = False


@attrs.frozen
class TableAggregate:
    """`KTableAggregate`, `KTableReduce`: subtracts the old value and adds the new one."""

    store: str
    aggregation: Aggregation
    sends_old: bool = False
