"""The entries of the function tables."""

from collections.abc import Callable

import attrs

from headwater_spark.engine.records import Value


@attrs.frozen
class Function:
    """A function with `least` to `most` arguments (None = any number).

    The result of a `strict` function is null if an argument is null; then `evaluate` is not called.
    """

    evaluate: Callable[..., Value]
    least: int
    most: int | None
    strict: bool = True


def strict(evaluate: Callable[..., Value], least: int, most: int | None = -1) -> Function:
    return Function(evaluate, least, least if most == -1 else most)


def lenient(evaluate: Callable[..., Value], least: int, most: int | None = -1) -> Function:
    """Return a function that is called with null arguments, too."""
    return Function(evaluate, least, least if most == -1 else most, strict=False)
