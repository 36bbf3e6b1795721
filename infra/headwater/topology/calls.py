"""The recorded calls: steps of a document in order, and the handles that name results for later calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

Text = str | int | float | bool
"""An expression. Numbers and booleans are written as text."""
Options = Mapping[str, Any]
"""Options as in a document, with its keys: `{"store": "counts", "retention": "1d"}`."""
Named = str | Options
"""The name of a store, or its options."""
Class = str | type | Callable[..., Any]
"""A Python class or function, or its name as `module:Class`."""
_MAIN = "__main__"


def class_name(given: Class | None) -> str | None:
    """Return a class or function as a document names it: `module:Class`.

    Raises:
        ValueError: Workers cannot import it: it is in a notebook, the main program or a function.
        TypeError: It is neither a class nor a function, such as an instance of a class.
    """
    if given is None or isinstance(given, str):
        return given
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if module is None or name is None:
        raise TypeError(
            f"{given!r} is neither a class nor a function. Each task makes its own instance: pass the class."
        )
    if module == _MAIN or "<locals>" in name:
        raise ValueError(
            f"{name} cannot be imported by the workers of Spark: it is defined in "
            f"{'the main program or a notebook' if module == _MAIN else 'a function'}. Move it into a module."
        )
    return f"{module}:{name}"


def _document_options(options: Options) -> dict[str, Any]:
    """Return the given options with the keys of a document: `store_name` is `storeName`; None = not given."""
    return {_document_key(name): _plain_value(value) for name, value in options.items() if value is not None}


def plain_options(options: Options) -> dict[str, Any]:
    """Return options that have the keys of a document, as mappings, lists and scalars; None is kept."""
    return {str(key): _plain_value(item) for key, item in options.items()}


def _document_key(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - any option
    if isinstance(value, Mapping):
        return plain_options(value)
    if isinstance(value, type):
        return class_name(value)
    if callable(value):
        raise TypeError(
            f"{value!r} is a function, and this option takes an expression of Spark SQL as text, such as "
            "`value.amount > 0`. For a function of your own, call `process_values` or `process`."
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain_value(item) for item in value]
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(
            f"{value!r} cannot be part of a document, which has text, numbers, lists and mappings. "
            "A duration is text, such as `1h`."
        )
    return value


@attrs.define(eq=False)
class Call:
    """One step: `options` get the key `as` when a later call refers to the result."""

    operator: str
    options: dict[str, Any]

    def step(self) -> dict[str, Any]:
        """Return the step of the document; a default branch without options is `true`."""
        options = dict(self.options)
        if "branches" in options:
            options["branches"] = [_write_branch(each) for each in options["branches"]]
        if "default" in options:
            options["default"] = _write_branch(options["default"]) or True
        return {self.operator: options}


def _write_branch(options: Mapping[str, Any]) -> dict[str, Any]:
    written = dict(options)
    if "then" in written:
        written["then"] = written["then"].steps()
    return written


@attrs.define(eq=False)
class Handles:
    """The handles of a document, each used once."""

    _taken: set[str] = attrs.field(factory=set)

    def reserve(self, name: str) -> None:
        """Use a name that the user has chosen.

        Raises:
            ValueError: It is used already.
        """
        if name in self._taken:
            raise ValueError(f"Two results cannot have the same handle {name!r}.")
        self._taken.add(name)

    def handle_for(self, options: dict[str, Any], operator: str) -> str:
        """Return the handle of a result; choose one if it has none yet."""
        if "as" not in options:
            number = 1
            while (name := f"{operator}-{number}") in self._taken:
                number += 1
            self._taken.add(name)
            options["as"] = name
        handle: str = options["as"]
        return handle


@attrs.define(eq=False)
class Calls:
    """A list of steps: of the document, or of a branch, which begins with the records of the branch."""

    handles: Handles
    calls: list[Call] = attrs.field(factory=list)
    start: "Result | None" = None
    """The result that the first step takes by default; None = none."""
    is_complete: bool = False
    """Whether the function of a branch has returned: a further step would change the branch's result."""

    def add(self, operator: str, source: "Result | None" = None, /, **options: Any) -> "Result":  # noqa: ANN401
        """Record a call on `source`; return its result.

        Raises:
            ValueError: The calls of the branch are complete.
        """
        if self.is_complete:
            raise ValueError(
                "A function that was passed as `then` has returned: its streams get no further calls. Omit "
                "`then`, and continue with the stream that `no_default_branch` returns."
            )
        given = _document_options(options)
        if "as" in given:
            self.handles.reserve(given["as"])
        if source is not None and not self._is_preceding(source):
            given = {"from": source.handle(), **given}
        call = Call(operator, given)
        self.calls.append(call)
        return Result(self, call.options, operator)

    def steps(self) -> list[dict[str, Any]]:
        return [call.step() for call in self.calls]

    def _is_preceding(self, source: "Result") -> bool:
        """Return whether a step without `from` takes the result."""
        if not self.calls:
            return source is self.start
        return source.calls is self and self.calls[-1].options is source.options


@attrs.frozen(eq=False)
class Result:
    """The result of a step, or the records of a branch: `options` get the handle."""

    calls: Calls
    options: dict[str, Any]
    operator: str
    is_start: bool = False
    """The records of a branch that `then` continues: only its first call takes them."""

    def handle(self) -> str:
        """Return the name by which a later step refers to the result.

        Raises `ValueError` if it has none: the records of a branch within its `then`.
        """
        if self.is_start:
            raise ValueError(
                "Only the first call of `then` takes the records of its branch. To use them more than once, "
                "omit `then`, and continue with the stream that `no_default_branch` returns."
            )
        return self.calls.handles.handle_for(self.options, self.operator)
