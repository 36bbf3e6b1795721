"""Grouping, windowing, aggregating and suppressing."""

from enum import Enum

import attrs

from headwater.model.stores import Logging, Materialized, Serdes
from headwater.model.windows import Window


@attrs.frozen
class GroupByKey:
    """`KStream#groupByKey(Grouped)`."""

    name: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class GroupBy:
    """`KStream#groupBy(selector, Grouped)` or `KTable#groupBy(selector, Grouped)`."""

    name: str | None = None
    key: str | None = None
    value: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class WindowedBy:
    """`windowedBy(window)` with `emitStrategy`; `emit_on_close` = `EmitStrategy.onWindowClose()`."""

    window: Window
    emit_on_close: bool = False


@attrs.frozen
class Cogroup:
    """`KGroupedStream#cogroup(aggregator)`, or with `other` `CogroupedKStream#cogroup(other, aggregator)`."""

    other: str | None = None
    value: str | None = None


@attrs.frozen
class Count:
    """`count(Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None


@attrs.frozen
class Reduce:
    """`reduce(adder[, subtractor], Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None
    add: str | None = None
    remove: str | None = None


@attrs.frozen
class Aggregate:
    """`aggregate(initializer, adder[, subtractor | merger], Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None
    init: str | None = None
    add: str | None = None
    remove: str | None = None
    merge: str | None = None


class SuppressUntil(Enum):
    """`Suppressed.untilTimeLimit` or `Suppressed.untilWindowCloses`."""

    TIME_LIMIT = "timeLimit"
    WINDOW_CLOSES = "windowCloses"


@attrs.frozen
class Suppress:
    """`suppress(Suppressed)`; None for `max_records`/`max_bytes` = unbounded."""

    until: SuppressUntil
    name: str | None = None
    time_limit_ms: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    logging: Logging | None = None
