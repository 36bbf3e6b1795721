"""Check handles: `from` and `with` must name an earlier result; without `from` the step before must have one.

The compiler checks what a handle is (stream, table, grouped stream and so on).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from headwater.model.problems import Problem, ProblemCode, shorten_text
from headwater.spec.locations import MAX_PROBLEMS, PathPart, RawDocument
from headwater.spec.phrases import nearest, one_of
from headwater.spec.schema import operators

_SOURCES = frozenset({"stream", "table", "globalTable"})
_WITHOUT_RESULT = frozenset({"to", "foreach", "print", "split", "addStateStore", "addGlobalStore"})
_ON_TOPOLOGY = frozenset(
    {"addSource", "addProcessor", "addSink", "connectProcessorAndStateStores", "addReadOnlyStateStore"}
)
"""Calls on the `Topology`: they do not take or return a result."""
_TAKING = frozenset(operators()) - _SOURCES - _ON_TOPOLOGY - {"addStateStore", "addGlobalStore"}
_FEW, _MOST = 12, 200
"""How many handles are listed, and how many of the latest are compared with a mistyped one."""

Path = tuple[PathPart, ...]


def handle_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return problems for unknown, repeated and missing handles. What does not fit the schema is skipped."""
    steps = raw.data.get("topology") if isinstance(raw.data, dict) else None
    if not isinstance(steps, list):
        return ()
    return tuple(islice(_Handles(raw).problems(steps, ("topology",), None), MAX_PROBLEMS))


class _Handles:
    """Goes through the steps in order and records the line of each handle."""

    def __init__(self, raw: RawDocument) -> None:
        self._raw = raw
        self._known: dict[str, int] = {}

    def problems(self, steps: list[Any], path: Path, preceding: str | None) -> Iterator[Problem]:
        """Yield problems. `preceding` is the operator whose result the first step takes by default."""
        for index, step in enumerate(steps):
            if not (isinstance(step, dict) and len(step) == 1):
                preceding = "?"  # an unknown step probably has a result
                continue
            ((operator, options),) = step.items()
            at, options = (*path, index, operator), options if isinstance(options, dict) else {}
            if operator in _TAKING:
                yield from self._input(operator, options, at, preceding)
            yield from self._refers(operator, options, at)
            if operator == "split":
                yield from self._branches(options, at)
            yield from self._defines(options, at)
            if operator not in _ON_TOPOLOGY:
                preceding = operator

    def _input(
        self, operator: str, options: dict[str, Any], at: Path, preceding: str | None
    ) -> Iterator[Problem]:
        if "from" in options or (preceding is not None and preceding not in _WITHOUT_RESULT):
            return
        reason = "it is the first step" if preceding is None else f"`{preceding}` before it has no result"
        yield from self._problem(
            at,
            f"`{operator}` has no input: {reason}.",
            expected="`from`, or a step with a result before it",
            found="neither",
            why="Without `from` a step continues from the result of the preceding one.",
            fix="Add `from` with the handle of its input.",
        )

    def _refers(self, operator: str, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        for key in ("from", "with"):
            handle = options.get(key)
            if isinstance(handle, str) and handle not in self._known:
                known = [shorten_text(name) for name in islice(reversed(self._known), _MOST)]
                meant, shown = nearest(handle, known), shorten_text(handle)
                yield from self._problem(
                    (*at, key),
                    f"`{operator}` refers to the handle `{shown}`, which no earlier step defines.",
                    expected=one_of(known[:_FEW]) if known else "a handle of an earlier step",
                    found=f"`{shown}`",
                    why="A step can only use a result of an earlier step.",
                    fix=f"Did you mean `{meant}`?"
                    if meant
                    else f"Add `as: {shown}` to the step that it refers to.",
                )

    def _branches(self, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        branches = options.get("branches")
        named = enumerate(branches if isinstance(branches, list) else ())
        positions = [((*at, "branches", index), branch) for index, branch in named]
        for path, branch in (*positions, ((*at, "default"), options.get("default"))):
            if isinstance(branch, dict):
                then = branch.get("then")
                if isinstance(then, list):
                    yield from self.problems(then, (*path, "then"), "branch")
                yield from self._defines(branch, path)

    def _defines(self, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        handle = options.get("as")
        if not isinstance(handle, str):
            return
        if handle in self._known:
            yield from self._problem(
                (*at, "as"),
                f"The handle `{shorten_text(handle)}` is defined twice.",
                expected="each handle once",
                found=f"first on line {self._known[handle]}",
                why="Which of the two a later step refers to would depend on its position.",
                fix="Give one of them another name.",
            )
            return
        location = self._raw.location((*at, "as"))
        self._known[handle] = location.line if location is not None else 0

    def _problem(
        self, path: Path, summary: str, *, expected: str, found: str, why: str, fix: str
    ) -> Iterator[Problem]:
        location = self._raw.location(path)
        if location is not None:
            yield Problem(
                code=ProblemCode.SCHEMA_VIOLATION,
                summary=summary,
                expected=expected,
                found=found,
                why=why,
                fix=fix,
                location=location,
            )
