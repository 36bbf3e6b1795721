"""Streams, tables and groups with the calls of Kafka Streams; each call adds a step to the document.

Options are the keys of the operator in a document (docs/documents.md), in snake case. Expressions are Spark
SQL over `key`, `value` and `timestamp`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from headwater.topology.calls import Calls, Class, Named, Options, Result, Text, class_name
from headwater.topology.stream_or_table import CallTarget, StreamOrTable


class _Aggregated(CallTarget):
    """Groups that can be counted, reduced and aggregated to a table."""

    def count(
        self, *, name: str | None = None, materialized: Named | None = None, as_: str | None = None
    ) -> "KTable":
        """Count the records of each key."""
        return KTable(self._add("count", name=name, materialized=materialized, as_=as_))

    def reduce(
        self,
        add: Text | None = None,
        remove: Text | None = None,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        as_: str | None = None,
    ) -> "KTable":
        """Combine the values of each key: `total` is the result so far. `remove` is for grouped tables."""
        options = {"name": name, "materialized": materialized, "as_": as_}
        return KTable(self._add("reduce", add=add, remove=remove, **options))

    def aggregate(
        self,
        init: Text | None = None,
        add: Text | None = None,
        remove: Text | None = None,
        merge: Text | None = None,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        as_: str | None = None,
    ) -> "KTable":
        """Aggregate the values of each key. `remove` is for grouped tables, `merge` for session windows."""
        options = {"name": name, "materialized": materialized, "as_": as_}
        return KTable(self._add("aggregate", init=init, add=add, remove=remove, merge=merge, **options))


class WindowedKStream(_Aggregated):
    """Groups divided into windows."""


class KGroupedTable(_Aggregated):
    """A table grouped by another key."""


class _Windowed(_Aggregated):
    def windowed_by(
        self,
        *,
        tumbling: Options | None = None,
        hopping: Options | None = None,
        sliding: Options | None = None,
        session: Options | None = None,
        unlimited: Options | None = None,
        emit: str | None = None,
        as_: str | None = None,
    ) -> WindowedKStream:
        """Divide the groups into windows of exactly one kind: `tumbling={"size": "1h", "grace": "5m"}`."""
        return WindowedKStream(
            self._add(
                "windowedBy",
                tumbling=tumbling,
                hopping=hopping,
                sliding=sliding,
                session=session,
                unlimited=unlimited,
                emit=emit,
                as_=as_,
            )
        )


class CogroupedKStream(_Windowed):
    """Several grouped streams that are aggregated together."""

    def cogroup(
        self, other: "KGroupedStream", add: Text | None = None, *, as_: str | None = None
    ) -> "CogroupedKStream":
        """Add another grouped stream with its own aggregator."""
        return CogroupedKStream(self._add("cogroup", with_=self._handle_of(other), add=add, as_=as_))


class KGroupedStream(_Windowed):
    """A stream grouped by its key."""

    def cogroup(self, add: Text | None = None, *, as_: str | None = None) -> CogroupedKStream:
        """Begin an aggregation of several grouped streams."""
        return CogroupedKStream(self._add("cogroup", add=add, as_=as_))


class KTable(StreamOrTable):
    """A table: the latest value of each key."""

    def to_stream(
        self, *, select_key: Text | None = None, name: str | None = None, as_: str | None = None
    ) -> "KStream":
        """Return the stream of the table's changes."""
        return KStream(self._add("toStream", select_key=select_key, name=name, as_=as_))

    def group_by(
        self,
        key: Text | None = None,
        value: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> KGroupedTable:
        """Group the table by another key."""
        return KGroupedTable(self._add("groupBy", key=key, value=value, name=name, serdes=serdes, as_=as_))

    def suppress(
        self,
        until: str,
        *,
        time_limit: str | int | None = None,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: str | None = None,
        name: str | None = None,
        logging: bool | Options | None = None,
        as_: str | None = None,
    ) -> "KTable":
        """Hold back updates: `until` is `windowCloses` or `timeLimit`."""
        return KTable(
            self._add(
                "suppress",
                until=until,
                time_limit=time_limit,
                max_records=max_records,
                max_bytes=max_bytes,
                when_full=when_full,
                name=name,
                logging=logging,
                as_=as_,
            )
        )

    def transform_values(
        self,
        class_: Class | None = None,
        *,
        stores: Sequence[Named] | None = None,
        name: str | None = None,
        materialized: Named | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KTable":
        """Compute values with a `ValueTransformer`, which may use stores."""
        options = {"name": name, "materialized": materialized, "serdes": serdes, "as_": as_}
        return KTable(self._add("transformValues", class_=class_name(class_), stores=stores, **options))


class KStream(StreamOrTable):
    """A stream of records."""

    def map(
        self,
        key: Text | None = None,
        value: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Compute key and value of each record."""
        return KStream(self._add("map", key=key, value=value, name=name, serdes=serdes, as_=as_))

    def flat_map(
        self,
        each: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Compute any number of records of each record: an array of structs of `key` and `value`."""
        return KStream(self._add("flatMap", each=each, name=name, serdes=serdes, as_=as_))

    def flat_map_values(
        self,
        each: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Compute any number of values of each record: an array."""
        return KStream(self._add("flatMapValues", each=each, name=name, serdes=serdes, as_=as_))

    def select_key(
        self,
        key: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Compute a new key of each record."""
        return KStream(self._add("selectKey", key=key, name=name, serdes=serdes, as_=as_))

    def peek(self, *, name: str | None = None, as_: str | None = None) -> "KStream":
        """Add a node that observes records."""
        return KStream(self._add("peek", name=name, as_=as_))

    def foreach(self, *, name: str | None = None) -> None:
        """End the stream with a node that consumes its records."""
        self._add("foreach", name=name)

    def print(self, *, name: str | None = None) -> None:
        """End the stream with a node that prints its records."""
        self._add("print", name=name)

    def merge(self, other: "KStream", *, name: str | None = None, as_: str | None = None) -> "KStream":
        """Return the records of both streams."""
        return KStream(self._add("merge", with_=self._handle_of(other), name=name, as_=as_))

    def split(self, *, name: str | None = None) -> "BranchedKStream":
        """Send each record to the first branch whose condition is true; add branches to the result."""
        return BranchedKStream(self._add("split", name=name), name or "")

    def repartition(
        self,
        *,
        name: str | None = None,
        partitions: int | None = None,
        partitioner: Any = None,  # noqa: ANN401 - text or options
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Write the stream to a repartition topic, and read it from there."""
        options = {"partitioner": partitioner, "serdes": serdes, "as_": as_}
        return KStream(self._add("repartition", name=name, partitions=partitions, **options))

    def to(
        self,
        topic: str | None = None,
        *,
        topic_expression: Text | None = None,
        extractor: str | None = None,
        name: str | None = None,
        partitioner: Any = None,  # noqa: ANN401 - text or options
        serdes: Options | None = None,
    ) -> None:
        """Write the records to a topic, or to the topics that an expression or an extractor chooses."""
        options = {"name": name, "partitioner": partitioner, "serdes": serdes}
        self._add("to", topic=topic, topic_expression=topic_expression, extractor=extractor, **options)

    def process(
        self,
        class_: Class | None = None,
        *,
        stores: Sequence[Named] | None = None,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Process the records with a `Processor` of `headwater_spark.processors`."""
        options = {"name": name, "serdes": serdes, "as_": as_}
        return KStream(self._add("process", class_=class_name(class_), stores=stores, **options))

    def process_values(
        self,
        class_: Class | None = None,
        *,
        stores: Sequence[Named] | None = None,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> "KStream":
        """Process the records with a `FixedKeyProcessor`, which does not change keys."""
        options = {"name": name, "serdes": serdes, "as_": as_}
        return KStream(self._add("processValues", class_=class_name(class_), stores=stores, **options))

    def group_by_key(
        self, *, name: str | None = None, serdes: Options | None = None, as_: str | None = None
    ) -> KGroupedStream:
        """Group the stream by its key."""
        return KGroupedStream(self._add("groupByKey", name=name, serdes=serdes, as_=as_))

    def group_by(
        self,
        key: Text | None = None,
        *,
        name: str | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> KGroupedStream:
        """Group the stream by another key, through a repartition topic."""
        return KGroupedStream(self._add("groupBy", key=key, name=name, serdes=serdes, as_=as_))

    def to_table(
        self,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> KTable:
        """Return the table of the latest value of each key."""
        return KTable(self._add("toTable", name=name, materialized=materialized, serdes=serdes, as_=as_))


Chain = Callable[[KStream], KStream | None]
"""The calls of a branch: takes its records, returns the result, or None if the branch ends."""


@attrs.frozen(eq=False)
class BranchedKStream:
    """A split stream. Branches are tried in the order of the calls."""

    _result: Result
    _prefix: str
    _streams: dict[str, KStream] = attrs.field(factory=dict)
    _names: set[str] = attrs.field(factory=set)

    def branch(
        self,
        where: Text | None = None,
        *,
        name: str | None = None,
        then: Chain | None = None,
        as_: str | None = None,
    ) -> "BranchedKStream":
        """Add a branch. `then` continues it at once, as `Branched.withFunction` does."""
        options = self._options(str(len(self._branches()) + 1), name, then, as_, where)
        self._branches().append(options)
        return self

    def default_branch(
        self, *, name: str | None = None, then: Chain | None = None, as_: str | None = None
    ) -> Mapping[str, KStream]:
        """Add the branch of the records that match no other; return the branches as `no_default_branch`."""
        self._result.options["default"] = self._options("0", name, then, as_, None)
        return self.no_default_branch()

    def no_default_branch(self) -> Mapping[str, KStream]:
        """Return name → stream of the branches that continue; a name begins with the name of the split."""
        return dict(self._streams)

    def _branches(self) -> list[dict[str, Any]]:
        branches: list[dict[str, Any]] = self._result.options.setdefault("branches", [])
        return branches

    def _options(
        self, position: str, name: str | None, then: Chain | None, as_: str | None, where: Text | None
    ) -> dict[str, Any]:
        given = {"name": name, "as": as_, "where": where}
        options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        calls = self._result.calls
        if (name or position) in self._names:
            raise ValueError(f"Two branches cannot have the same name {name or position!r}.")
        self._names.add(name or position)
        if as_ is not None:
            calls.handles.reserve(as_)
        stream: KStream | None = KStream(Result(calls, options, f"branch-{name or position}"))
        if then is not None:
            inner = Calls(calls.handles)
            options["then"] = inner
            inner.start = Result(inner, {}, "branch", is_start=True)
            last = then(KStream(inner.start))
            inner.is_complete = True
            if last is not None and (not inner.calls or not last.is_result_of(inner.calls[-1].options)):
                raise ValueError("`then` must return the result of its last call, or None.")
            stream = stream if last is not None else None
        if stream is not None:
            self._streams[f"{self._prefix}{name or position}"] = stream
        return options
