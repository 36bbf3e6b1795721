"""Calls on a `KStream` that return a stream, and sinks."""

from enum import Enum

import attrs

from headwater.model.operators.steps import Step
from headwater.model.stores import Materialized, Serdes, StoreBuilder


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
class Transform:
    """One of `TransformKind`; the expressions are Spark SQL, `each` is one that returns an array."""

    kind: TransformKind
    name: str | None = None
    key: str | None = None
    value: str | None = None
    where: str | None = None
    each: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class Process:
    """`process(supplier, Named, stores…)`; `connected` are the builders of the supplier's own `stores()`."""

    name: str | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class ProcessValues:
    """`processValues(supplier, Named, stores…)`."""

    name: str | None = None
    stores: tuple[str, ...] = ()
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class Merge:
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
class Split:
    """`split(Named)`, its branches, then `defaultBranch` or, without `default`, `noDefaultBranch`."""

    name: str | None = None
    branches: tuple[Branch, ...] = ()
    default: Branch | None = None


@attrs.frozen
class Repartition:
    """`repartition(Repartitioned)`."""

    name: str | None = None
    partitions: int | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None


@attrs.frozen
class To:
    """`to(topic | TopicNameExtractor, Produced)`.

    `extractor` is the text that the extractor's `toString()` prints, `topic_expression` what it evaluates.
    """

    topic: str | None = None
    extractor: str | None = None
    name: str | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None
    topic_expression: str | None = None
