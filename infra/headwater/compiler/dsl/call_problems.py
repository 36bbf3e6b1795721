"""Problems of calls without a handle, or on a handle of the wrong type."""

import difflib
from collections.abc import Iterable

from headwater.compiler.dsl.handles import CALLS_ON, KIND, Handle, call_name
from headwater.compiler.dsl.problems import unsupported_call
from headwater.model.operators import Step
from headwater.model.problems import Location, Problem

_NO_CALLS = {
    "global table": "Name it in `with` of a stream's join.",
    "split": "Give the branches `as`, and name one in `from`.",
}


def no_input(step: Step) -> Problem:
    return unsupported_call(
        f"`{call_name(step.operator)}` has no input: no call precedes it.",
        expected="`from: <alias>`, or a preceding call",
        found="the first step",
        at=step.at,
        fix="Start with `stream` or `table`.",
    )


def follows_nothing(step: Step, call: str) -> Problem:
    return unsupported_call(
        f"`{call_name(step.operator)}` follows `{call}`, which returns nothing.",
        expected="`from: <alias>` of an earlier result",
        found=f"the result of `{call}`",
        at=step.at,
        fix="Set its input: `from: <alias>`.",
    )


def alias_taken(alias: str, at: Location | None) -> Problem:
    return unsupported_call(
        f"Two results are named {alias}.",
        expected="each `as` once",
        found=alias,
        at=at,
        fix="Rename one of them.",
    )


def alias_unknown(name: str, known: Iterable[str], at: Location | None) -> Problem:
    aliases = sorted(known)
    near = difflib.get_close_matches(name, aliases, n=1)
    return unsupported_call(
        f"No result is named {name}.",
        expected=f"one of: {', '.join(aliases) or 'none'}",
        found=name,
        at=at,
        fix=f"Did you mean {near[0]}?" if near else f"Give an earlier step `as: {name}`.",
    )


def call_does_not_fit(step: Step, on: Handle) -> Problem:
    call = call_name(step.operator)
    *most, last = [f"a {KIND[kind]}" for kind, calls in CALLS_ON.items() if call in calls]
    takers = f"{', '.join(most)} or {last}" if most else last
    offered = ", ".join(CALLS_ON[type(on)])
    subject = f"`{step.input}`" if step.input is not None else "the result before it"
    return unsupported_call(
        f"`{call}` needs {takers}; {subject} is a {KIND[type(on)]}.",
        expected=takers,
        found=f"a {KIND[type(on)]}",
        at=step.at,
        fix=f"A {KIND[type(on)]} offers: {offered}." if offered else _NO_CALLS[KIND[type(on)]],
    )


def call_in_a_branch(step: Step) -> Problem:
    call = call_name(step.operator)
    return unsupported_call(
        f"`{call}` is a call on the whole topology, not on a branch.",
        expected="calls of the DSL in `then`",
        found=call,
        at=step.at,
        fix=f"Make the call `{call}` outside of `then`.",
    )
