"""Handles: `from` and `with` must name an earlier result; without `from` the step before must have one.

What kind of thing a handle is (stream, table, grouped stream…) is the compiler's matter.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from infra.model.problems import Problem, ProblemCode
from infra.spec.limits import MAX_PROBLEMS
from infra.spec.places import PathPart, RawDocument
from infra.spec.schema import operators
from infra.spec.spelling import nearest

_SOURCES = frozenset({"stream", "table", "globalTable"})
_WITHOUT_RESULT = frozenset({"to", "foreach", "print", "split"})
_APART = frozenset(
    {
        "addStateStore",
        "addGlobalStore",
        "addSource",
        "addProcessor",
        "addSink",
        "connectProcessorAndStateStores",
    }
)
"""Calls on the builder or the topology: they neither take nor leave a result."""
_TAKING = frozenset(operators()) - _SOURCES - _APART


def handle_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Unknown, repeated and missing handles. Reads what fits the schema and skips the rest."""
    steps = raw.data.get("topology") if isinstance(raw.data, dict) else None
    if not isinstance(steps, list):
        return ()
    return tuple(islice(_Scope(raw, {}).problems(steps, ("topology",), None), MAX_PROBLEMS))


class _Scope:
    """The handles known at one place; a branch's `then` sees those around it and keeps its own to itself."""

    def __init__(self, raw: RawDocument, known: Mapping[str, int]) -> None:
        self.raw = raw
        self.known = dict(known)

    def problems(
        self, steps: list[Any], path: tuple[PathPart, ...], preceding: str | None
    ) -> Iterator[Problem]:
        """`preceding` is the operator whose result the next step takes by default."""
        for index, step in enumerate(steps):
            if not (isinstance(step, dict) and len(step) == 1):
                preceding = "?"  # whatever it was to be, it was probably to have a result
                continue
            ((operator, options),) = step.items()
            options = options if isinstance(options, dict) else {}
            at = (*path, index, operator)
            yield from self._inputs(operator, options, at, preceding)
            if operator == "split":
                yield from self._branches(options, at)
            elif operator not in _APART:
                yield from self._define(options, at)
            if operator not in _APART:
                preceding = operator

    def _inputs(
        self, operator: str, options: dict[str, Any], at: tuple[PathPart, ...], preceding: str | None
    ) -> Iterator[Problem]:
        for key in ("from", "with"):
            handle = options.get(key)
            if isinstance(handle, str) and handle not in self.known:
                yield from self._problem(
                    (*at, key),
                    f"`{operator}` refers to the handle `{handle}`, which no step before it defines.",
                    expected="one of " + ", ".join(f"`{name}`" for name in list(self.known)[:12])
                    if self.known
                    else "a handle",
                    found=f"`{handle}`",
                    why="A step can only continue from a result that exists when it is called.",
                    fix=f"Did you mean `{meant}`?"
                    if (meant := nearest(handle, self.known)) is not None
                    else f"Name the step that it means by `as: {handle}`, before this one.",
                )
        takes_preceding = "from" not in options and operator in _TAKING
        if takes_preceding and (preceding is None or preceding in _WITHOUT_RESULT):
            yield from self._problem(
                at,
                f"`{operator}` has nothing to continue from: "
                + (
                    "it is the first step."
                    if preceding is None
                    else f"`{preceding}` before it has no result."
                ),
                expected="`from`, or a step with a result before it",
                found="neither",
                why="Without `from` a step continues from the result of the preceding one.",
                fix="Add `from` with the handle of the step to continue from.",
            )

    def _branches(self, options: dict[str, Any], at: tuple[PathPart, ...]) -> Iterator[Problem]:
        branches = options.get("branches")
        places: list[tuple[tuple[PathPart, ...], Any]] = [
            ((*at, "branches", index), branch)
            for index, branch in enumerate(branches if isinstance(branches, list) else ())
        ]
        places.append(((*at, "default"), options.get("default")))
        for path, branch in places:
            if isinstance(branch, dict):
                then = branch.get("then")
                if isinstance(then, list):
                    yield from _Scope(self.raw, self.known).problems(then, (*path, "then"), "branch")
                yield from self._define(branch, path)

    def _define(self, options: dict[str, Any], at: tuple[PathPart, ...]) -> Iterator[Problem]:
        handle = options.get("as")
        if not isinstance(handle, str):
            return
        path = (*at, "as")
        location = self.raw.location(path)
        if handle in self.known:
            yield from self._problem(
                path,
                f"The handle `{handle}` is defined twice.",
                expected="each handle once",
                found=f"first on line {self.known[handle]}",
                why="Which of the two a later step means would depend on where it stands.",
                fix="Give one of them another name.",
            )
        else:
            self.known[handle] = location.line if location is not None else 0

    def _problem(self, path: tuple[PathPart, ...], summary: str, **texts: str) -> Iterator[Problem]:
        location = self.raw.location(path)
        if location is not None:
            yield Problem(code=ProblemCode.SCHEMA_VIOLATION, summary=summary, location=location, **texts)  # type: ignore[arg-type]
