"""What is kept as a running total, of a stream's records or of a table's changes."""

from enum import Enum

import attrs

from infra.model.windows import Window


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
    """`KStreamAggregate`, `KStreamReduce` (`window` None), and their windowed, sliding and session kin."""

    store: str
    aggregation: Aggregation
    window: Window | None = None
    emit_on_close: bool = False
    sends_old: bool = False


@attrs.frozen
class TableAggregate:
    """`KTableAggregate`, `KTableReduce`: removes the old value, adds the new one."""

    store: str
    aggregation: Aggregation
    sends_old: bool = False
