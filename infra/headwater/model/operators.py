"""One frozen class for each call of the DSL and of the Processor API; the fields are the call's options.

`name` is what the user passes as `Named`, `Grouped`, `Joined`, `Repartitioned`, `Consumed.as` and so on;
None = not given. Expressions and Python classes are texts that only the runtime uses.
"""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.formats import JoinKind
from headwater.model.problems import Location
from headwater.model.stores import Logging, Materialized, Serdes, StoreBuilder, StoreSupplier
from headwater.model.windows import JoinWindow, Window


@attrs.frozen
class Operator:
    """One call. Calls of the Processor API are in `processor_api`."""


@attrs.frozen
class Step:
    """One call: `operator` on the handle `input`; its result is named `alias`.

    Without `input` the call is made on the result of the preceding step.
    """

    operator: Operator
    at: Location
    input: str | None = None
    alias: str | None = None


@attrs.frozen
class Topics:
    """What a source reads: a set of topic names in the order given, or a Java regular expression."""

    names: tuple[str, ...] = ()
    pattern: str | None = None


@attrs.frozen
class ReadStream(Operator):
    """`builder.stream(topics | pattern, Consumed)`."""

    topics: Topics
    name: str | None = None
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class ReadTable(Operator):
    """`builder.table(topic, Consumed, Materialized)`."""

    topic: str
    name: str | None = None
    materialized: Materialized | None = None
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class GlobalTable(Operator):
    """`builder.globalTable(topic, Consumed, Materialized)`."""

    topic: str
    name: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


class TransformKind(Enum):
    """Operators on single records. They differ in the name prefix and in whether they change key or value.

    FILTER, FILTER_NOT and MAP_VALUES are also calls on a `KTable`, which may have `Transform.materialized`.
    """

    FILTER = "filter"
    FILTER_NOT = "filterNot"
    MAP = "map"
    MAP_VALUES = "mapValues"
    FLAT_MAP = "flatMap"
    FLAT_MAP_VALUES = "flatMapValues"
    SELECT_KEY = "selectKey"
    PEEK = "peek"
    FOREACH = "foreach"
    PRINT = "print"


@attrs.frozen
class Transform(Operator):
    """One of `TransformKind`; the expressions are Spark SQL, `each` returns an array."""

    kind: TransformKind
    name: str | None = None
    key: str | None = None
    value: str | None = None
    where: str | None = None
    each: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class Process(Operator):
    """`process(supplier, Named, stores…)`; `connected` are the builders of the supplier's own `stores()`."""

    name: str | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class ProcessValues(Operator):
    """`processValues(supplier, Named, stores…)`."""

    name: str | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class Merge(Operator):
    """`merge(other, Named)`; `other` is a handle."""

    other: str
    name: str | None = None


@attrs.frozen
class Branch:
    """`branch(predicate, Branched)`; `then` are the calls of `withFunction` or `withConsumer`.

    `alias` names the handle of the branch, or with `then` the result of its last call.
    """

    name: str | None = None
    alias: str | None = None
    where: str | None = None
    then: tuple[Step, ...] = ()


@attrs.frozen
class Split(Operator):
    """`split(Named)`, its branches, then `defaultBranch` or, without `default`, `noDefaultBranch`."""

    name: str | None = None
    branches: tuple[Branch, ...] = ()
    default: Branch | None = None


@attrs.frozen
class Repartition(Operator):
    """`repartition(Repartitioned)`."""

    name: str | None = None
    partitions: int | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None


@attrs.frozen
class To(Operator):
    """`to(topic | TopicNameExtractor, Produced)`.

    `extractor` is the text that the extractor's `toString()` prints, `topic_expression` what it evaluates.
    """

    topic: str | None = None
    extractor: str | None = None
    name: str | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None
    topic_expression: str | None = None


@attrs.frozen
class ToTable(Operator):
    """`KStream#toTable(Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class ToStream(Operator):
    """`KTable#toStream(Named)`; `selects_key` when a key mapper is passed (`key` is its expression)."""

    name: str | None = None
    selects_key: bool = False
    key: str | None = None


@attrs.frozen
class TransformValues(Operator):
    """`KTable#transformValues(supplier, Materialized, Named, stores…)`."""

    name: str | None = None
    materialized: Materialized | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None


class JoinType(Enum):
    """The call, as the DSL spells it."""

    INNER = "join"
    LEFT = "leftJoin"
    OUTER = "outerJoin"

    @property
    def kind(self) -> JoinKind:
        """Return the kind of join that the call's processors make."""
        return _KINDS[self]


_KINDS: Mapping[JoinType, JoinKind] = {
    JoinType.INNER: "inner",
    JoinType.LEFT: "left",
    JoinType.OUTER: "outer",
}


@attrs.frozen
class Join(Operator):
    """`join`/`leftJoin`/`outerJoin` with the handle `other`.

    stream-stream: `window`, and `StreamJoined`'s `name`, `store_name`, `this_supplier`, `other_supplier`,
    `logging`. stream-table: `Joined`'s `name` and `grace_ms`. stream-global: `key` and `Named` `name`.
    table-table: `name`, `materialized`. Foreign key: `foreign_key` set, `TableJoined`'s `name`,
    `materialized`.
    """

    type: JoinType
    other: str
    name: str | None = None
    window: JoinWindow | None = None
    store_name: str | None = None
    this_supplier: StoreSupplier | None = None
    other_supplier: StoreSupplier | None = None
    logging: Logging | None = None
    grace_ms: int | None = None
    is_foreign_key: bool = False
    foreign_key: str | None = None
    key: str | None = None
    value: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class GroupByKey(Operator):
    """`KStream#groupByKey(Grouped)`."""

    name: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class GroupBy(Operator):
    """`KStream#groupBy(selector, Grouped)` or `KTable#groupBy(selector, Grouped)`."""

    name: str | None = None
    key: str | None = None
    value: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class WindowedBy(Operator):
    """`windowedBy(window)` with `emitStrategy`; `emit_on_close` = `EmitStrategy.onWindowClose()`."""

    window: Window
    emit_on_close: bool = False


@attrs.frozen
class Cogroup(Operator):
    """`KGroupedStream#cogroup(aggregator)`, or with `other` `CogroupedKStream#cogroup(other, aggregator)`."""

    other: str | None = None
    value: str | None = None


@attrs.frozen
class Count(Operator):
    """`count(Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None


@attrs.frozen
class Reduce(Operator):
    """`reduce(adder[, subtractor], Named, Materialized)`."""

    name: str | None = None
    materialized: Materialized | None = None
    add: str | None = None
    remove: str | None = None


@attrs.frozen
class Aggregate(Operator):
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
class Suppress(Operator):
    """`suppress(Suppressed)`; None for `max_records`/`max_bytes` = unbounded."""

    until: SuppressUntil
    name: str | None = None
    time_limit_ms: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    logging: Logging | None = None
