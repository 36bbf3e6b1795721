"""The calls of a document, made one after another, and the handles that they return."""

import difflib
from collections.abc import Sequence

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls import CALLS, CALLS_WITH_OTHER, STARTS
from infra.compiler.dsl.calls.streams import split
from infra.compiler.dsl.handles import CALLS_ON, KIND, Handle, Nothing, Refused, Stream
from infra.compiler.dsl.refusals import unfit
from infra.model import operators as op
from infra.model.operators import Operator
from infra.model.problems import Problem
from infra.model.stores import Materialized
from infra.model.topology import Step

_CALL_NAMES: dict[type, str] = {
    op.ReadStream: "stream",
    op.ReadTable: "table",
    op.GlobalTable: "globalTable",
    op.AddStateStore: "addStateStore",
    op.AddGlobalStore: "addGlobalStore",
    op.Process: "process",
    op.ProcessValues: "processValues",
    op.Merge: "merge",
    op.Split: "split",
    op.To: "to",
    op.Repartition: "repartition",
    op.GroupByKey: "groupByKey",
    op.GroupBy: "groupBy",
    op.WindowedBy: "windowedBy",
    op.Cogroup: "cogroup",
    op.Count: "count",
    op.Reduce: "reduce",
    op.Aggregate: "aggregate",
    op.Suppress: "suppress",
    op.ToTable: "toTable",
    op.ToStream: "toStream",
    op.TransformValues: "transformValues",
}
_NAME_IS_FREE = (op.Repartition, op.Suppress, op.GroupByKey)
"""Calls whose name Kafka Streams does not check."""


def call_name(operator: Operator) -> str:
    """As the DSL spells it."""
    if isinstance(operator, op.Transform):
        return operator.kind.value
    if isinstance(operator, op.Join):
        return operator.type.value
    return _CALL_NAMES[type(operator)]


class Document:
    """Runs steps on a builder. Handles have aliases; a step without `from` goes on from the one before."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._handles: dict[str, Handle] = {}

    def run(self, steps: Sequence[Step], current: Handle | None = None) -> Handle | None:
        """Make the calls; returns what the last one returned (`current` when there is none)."""
        for step in steps:
            self._builder.at = step.at
            current = self._call(step, current)
            if step.alias is not None:
                self._remember(step.alias, current)
        return current

    def _call(self, step: Step, current: Handle | None) -> Handle:
        operator = step.operator
        self._check_names(operator)
        start = STARTS.get(type(operator))
        if start is not None:
            return start(self._builder, operator)
        on = self._input(step, current)
        if not isinstance(on, Refused) and call_name(operator) not in CALLS_ON[type(on)]:
            return self._builder.refuse(self._does_not_fit(step, on))
        other = self._other(operator)
        if isinstance(on, Refused) or isinstance(other, Refused):
            return Refused()
        if isinstance(operator, op.Split) and isinstance(on, Stream):
            return split(self._builder, on, operator, self._branch)
        key = type(operator), type(on)
        if key in CALLS:
            return CALLS[key](self._builder, on, operator)
        return CALLS_WITH_OTHER[key](self._builder, on, operator, other)

    def _branch(self, branch: op.Branch, stream: Stream) -> None:
        at = self._builder.at
        result = self.run(branch.then, stream)
        self._builder.at = at
        if branch.alias is not None:
            self._remember(branch.alias, result)

    def _check_names(self, operator: Operator) -> None:
        if not isinstance(operator, _NAME_IS_FREE):
            self._builder.check_name(getattr(operator, "name", None), "name")
        materialized = getattr(operator, "materialized", None)
        if isinstance(materialized, Materialized) and materialized.supplier is None:
            self._builder.check_name(materialized.store, "store name")

    # handles

    def _remember(self, alias: str, handle: Handle | None) -> None:
        if alias in self._handles:
            self._builder.refuse(
                unfit(
                    f"Two results are called {alias}.",
                    expected="each `as` once",
                    found=alias,
                    at=self._builder.at,
                    fix="Call one of them differently.",
                )
            )
            return
        self._handles[alias] = handle if handle is not None else Nothing("split")

    def _input(self, step: Step, current: Handle | None) -> Handle:
        handle = current if step.input is None else self._named(step.input)
        if handle is None:
            return self._builder.refuse(
                unfit(
                    f"`{call_name(step.operator)}` has nothing to work on: no call stands before it.",
                    expected="`from: <alias>`, or a call before it",
                    found="the first step",
                    at=step.at,
                    fix="Start with `stream` or `table`.",
                )
            )
        if isinstance(handle, Nothing):
            return self._builder.refuse(
                unfit(
                    f"`{call_name(step.operator)}` follows `{handle.call}`, which returns nothing.",
                    expected="`from: <alias>` of an earlier result",
                    found=f"the result of `{handle.call}`",
                    at=step.at,
                    fix="Say what it works on: `from: <alias>`.",
                )
            )
        return handle

    def _other(self, operator: Operator) -> Handle | None:
        name = getattr(operator, "other", None)
        return self._named(name) if name is not None else None

    def _named(self, name: str) -> Handle:
        if name in self._handles:
            return self._handles[name]
        near = difflib.get_close_matches(name, self._handles, n=1)
        known = ", ".join(sorted(self._handles)) or "none"
        return self._builder.refuse(
            unfit(
                f"No result is called {name}.",
                expected=f"one of: {known}",
                found=name,
                at=self._builder.at,
                fix=f"Did you mean {near[0]}?" if near else "Give an earlier step `as: " + name + "`.",
            )
        )

    def _does_not_fit(self, step: Step, on: Handle) -> Problem:
        call = call_name(step.operator)
        *most, last = [f"a {KIND[kind]}" for kind, calls in CALLS_ON.items() if call in calls]
        takers = f"{', '.join(most)} or {last}" if most else last
        offered = ", ".join(CALLS_ON[type(on)])
        subject = f"`{step.input}`" if step.input is not None else "the result before it"
        return unfit(
            f"`{call}` needs {takers}; {subject} is a {KIND[type(on)]}.",
            expected=takers,
            found=f"a {KIND[type(on)]}",
            at=step.at,
            fix=f"A {KIND[type(on)]} offers: {offered}." if offered else _NO_CALLS[KIND[type(on)]],
        )


_NO_CALLS = {
    "global table": "Name it in `with` of a stream's join.",
    "split": "Give the branches `as`, and name one in `from`.",
}
