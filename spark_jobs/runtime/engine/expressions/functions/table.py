"""A row of the tables of functions."""

from collections.abc import Callable

import attrs

from spark_jobs.runtime.engine.records import Value


@attrs.frozen
class Function:
    """`evaluate` takes between `least` and `most` arguments (None = any number).

    A `strict` one is null if one of its arguments is, and is not called then.
    """

    evaluate: Callable[..., Value]
    least: int
    most: int | None
    strict: bool = True


def strict(evaluate: Callable[..., Value], least: int, most: int | None = -1) -> Function:
    return Function(evaluate, least, least if most == -1 else most)


def lenient(evaluate: Callable[..., Value], least: int, most: int | None = -1) -> Function:
    """One that deals with nulls itself."""
    return Function(evaluate, least, least if most == -1 else most, strict=False)
