"""What streams, tables and global tables have in common: their name in the document, filters and joins."""

from typing import Any, Self, TypedDict, Unpack

import attrs

from headwater.topology.calls import Named, Options, Result, Text


@attrs.frozen(eq=False)
class CallTarget:
    """What calls are applied to."""

    _result: Result

    def _add(self, operator: str, **options: Any) -> Result:  # noqa: ANN401 - options of any operator
        return self._result.calls.add(operator, self._result, **options)

    def handle(self) -> str:
        """Return the name of the result in the document; the document gets one for results that need it."""
        return self._result.handle()

    def _handle_of(self, other: "CallTarget") -> str:
        """Return the name of another result of the same builder.

        Raises:
            ValueError: It is a result of another builder, whose names mean other results.
            TypeError: It is no stream or table, such as the name of a topic.
        """
        if not isinstance(other, CallTarget):
            raise TypeError(
                f"{other!r} is no stream or table: pass what a call returned, such as `builder.table(...)`."
            )
        if other._result.calls.handles is not self._result.calls.handles:  # noqa: SLF001 - of the same class
            raise ValueError("Results of two builders cannot be combined: they are in different documents.")
        return other.handle()

    def is_result_of(self, options: object) -> bool:
        """Return whether these are the options of the call that returned the object."""
        return self._result.options is options


class GlobalKTable(CallTarget):
    """A table of which each instance has all records: a stream joins it by any key."""


class JoinOptions(TypedDict, total=False):
    """Options of the joins. Which of them a join has depends on its two sides (docs/documents.md)."""

    window: Options | None
    foreign_key: Text | None
    key: Text | None
    grace: str | int | None
    name: str | None
    store_name: str | None
    this_store: Options | None
    other_store: Options | None
    logging: bool | Options | None
    materialized: Named | None
    serdes: Options | None
    as_: str | None


class StreamOrTable(CallTarget):
    """A stream or a table: what can be filtered, mapped and joined."""

    def filter(
        self,
        where: Text | None = None,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        as_: str | None = None,
    ) -> Self:
        """Keep the records for which the condition is true."""
        return type(self)(self._add("filter", where=where, name=name, materialized=materialized, as_=as_))

    def filter_not(
        self,
        where: Text | None = None,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        as_: str | None = None,
    ) -> Self:
        """Keep the records for which the condition is false."""
        return type(self)(self._add("filterNot", where=where, name=name, materialized=materialized, as_=as_))

    def map_values(
        self,
        value: Text | None = None,
        *,
        name: str | None = None,
        materialized: Named | None = None,
        serdes: Options | None = None,
        as_: str | None = None,
    ) -> Self:
        """Compute a new value of each record."""
        options = {"name": name, "materialized": materialized, "serdes": serdes, "as_": as_}
        return type(self)(self._add("mapValues", value=value, **options))

    def join(
        self,
        other: "StreamOrTable | GlobalKTable",
        value: Text | None = None,
        **options: Unpack[JoinOptions],
    ) -> Self:
        """Join with a stream, table or global table; keep matching records only."""
        return type(self)(self._add("join", with_=self._handle_of(other), value=value, **options))

    def left_join(
        self,
        other: "StreamOrTable | GlobalKTable",
        value: Text | None = None,
        **options: Unpack[JoinOptions],
    ) -> Self:
        """Join as `join`; also return records that have no match on the other side."""
        return type(self)(self._add("leftJoin", with_=self._handle_of(other), value=value, **options))

    def outer_join(
        self, other: "StreamOrTable", value: Text | None = None, **options: Unpack[JoinOptions]
    ) -> Self:
        """Join as `join`; also return records of both sides that have no match."""
        return type(self)(self._add("outerJoin", with_=self._handle_of(other), value=value, **options))
