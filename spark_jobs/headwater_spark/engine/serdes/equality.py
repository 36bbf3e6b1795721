"""Equality of values as in Java, where it differs from Python's.

In Python, `1 == 1.0 == True` and `0.0 == -0.0`, and NaN differs from itself. In Java, numbers of different
types and the two zeros differ, and NaN equals itself (`Double#equals`; `IntNode`, `DoubleNode`, `BooleanNode`
of Jackson).
"""

from collections.abc import Callable
from math import copysign, isnan

from headwater_spark.engine.records import Value


def equal_in_java(one: Value, other: Value) -> bool:
    """Return whether two values of one format are equal; the order of an object's fields does not matter."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is float:
        return _equal_floats(one, other)
    if kind is dict:
        return len(one) == len(other) and all(
            name in other and equal_in_java(member, other[name]) for name, member in one.items()
        )
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal_in_java, one, other))
    return bool(one == other)


def _equal_floats(one: float, other: float) -> bool:
    if one == other:
        return copysign(1.0, one) == copysign(1.0, other)
    return isnan(one) and isnan(other)


def equal_in_bytes(serialize: Callable[[Value], bytes]) -> Callable[[Value, Value], bool]:
    """Return a function that compares the bytes of two values; values that cannot be serialized differ."""

    def equal(one: Value, other: Value) -> bool:
        try:
            return serialize(one) == serialize(other)
        except ValueError:
            return False

    return equal
