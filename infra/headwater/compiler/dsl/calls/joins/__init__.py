"""Joins. The types of both handles decide which of the five it is; options of other joins are errors."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.joins.stream_stream import join_streams
from headwater.compiler.dsl.calls.joins.tables import (
    join_by_foreign_key,
    join_stream_with_global_table,
    join_stream_with_table,
    join_tables,
)
from headwater.compiler.dsl.handles import KIND, GlobalTable, Handle, Stream, Table
from headwater.compiler.dsl.messages import unsupported_call
from headwater.model import operators as op
from headwater.model.operators import JoinType

_OPTIONS = {
    "window": "window",
    "store_name": "storeName",
    "this_supplier": "thisStore",
    "other_supplier": "otherStore",
    "logging": "logging",
    "grace_ms": "grace",
    "is_foreign_key": "foreignKey",
    "key": "key",
    "materialized": "materialized",
}
"""Field of `Join` → its name in a document; `name`, `value` and `serdes` are options of every join."""


@attrs.frozen
class _Kind:
    name: str
    make: Callable[[Builder, Any, op.Join, Any], Handle]
    options: frozenset[str]
    has_outer: bool = True


_STREAM_OPTIONS = frozenset({"window", "store_name", "this_supplier", "other_supplier", "logging"})

_KINDS: Mapping[tuple[type, type], _Kind] = {
    (Stream, Stream): _Kind("stream-stream", join_streams, _STREAM_OPTIONS),
    (Stream, Table): _Kind("stream-table", join_stream_with_table, frozenset({"grace_ms"}), has_outer=False),
    (Stream, GlobalTable): _Kind(
        "stream-global table", join_stream_with_global_table, frozenset({"key"}), has_outer=False
    ),
    (Table, Table): _Kind("table-table", join_tables, frozenset({"materialized"})),
}
_FOREIGN_KEY = _Kind(
    "foreign-key", join_by_foreign_key, frozenset({"is_foreign_key", "materialized"}), has_outer=False
)


def join(builder: Builder, on: Stream | Table, call: op.Join, other: Handle) -> Handle:
    kind = _KINDS.get((type(on), type(other)))
    if kind is None:
        return _no_partner(builder, on, call, other)
    if kind.name == "table-table" and call.is_foreign_key:
        kind = _FOREIGN_KEY
    _refuse_options(builder, call, kind)
    if call.type is JoinType.OUTER and not kind.has_outer:
        return builder.reject(
            unsupported_call(
                f"A {kind.name} join cannot be an outer join.",
                node=call.name,
                expected="join or leftJoin",
                found="outerJoin",
                fix="Use `join` or `leftJoin`.",
            )
        )
    return kind.make(builder, on, call, other)


def _refuse_options(builder: Builder, call: op.Join, kind: _Kind) -> None:
    for field, option in _OPTIONS.items():
        if field not in kind.options and getattr(call, field) not in (None, False):
            fitting = sorted(_OPTIONS[each] for each in kind.options)
            builder.reject(
                unsupported_call(
                    f"`{option}` does not belong to a {kind.name} join.",
                    node=call.name,
                    expected="one of: " + ", ".join(fitting),
                    found=option,
                    fix=f"Remove `{option}`, or join handles of other types.",
                )
            )


def _no_partner(builder: Builder, on: Stream | Table, call: op.Join, other: Handle) -> Handle:
    partners = [KIND[right] for left, right in _KINDS if left is type(on)]
    return builder.reject(
        unsupported_call(
            f"`{call.type.value}` of a {KIND[type(on)]} cannot take `{call.other}`, "
            f"which is a {KIND.get(type(other), 'result of another call')}.",
            node=call.name,
            expected="a " + ", a ".join(partners),
            found=KIND.get(type(other), "nothing"),
            fix="Name a handle of an expected type in `with`.",
        )
    )
