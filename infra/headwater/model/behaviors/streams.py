"""Behaviors of stream processors without state."""

from typing import Literal

import attrs


@attrs.frozen
class PassThrough:
    """Forwards each record: `merge`, and the node of each branch."""


@attrs.frozen
class Filter:
    """`filter`, and `filterNot` (`negate`)."""

    where: str | None
    negate: bool = False


@attrs.frozen
class MapRecord:
    """`map`, and `selectKey` (`value` None and `keeps_value`)."""

    key: str | None
    value: str | None = None
    keeps_value: bool = False


@attrs.frozen
class MapValues:
    """`mapValues`: `value` is the new value; the key stays."""

    value: str | None


@attrs.frozen
class FlatMap:
    """`each` yields an array of structs with `key` and `value`."""

    each: str | None


@attrs.frozen
class FlatMapValues:
    """`each` yields an array of values."""

    each: str | None


@attrs.frozen
class Peek:
    """`peek` (forwards), `foreach` and `print` (do not). The expression is evaluated and logged."""

    kind: Literal["peek", "foreach", "print"]
    each: str | None = None


@attrs.frozen
class Branch:
    """`KStreamBranch`: a record goes to the child of the first predicate that holds.

    `children[i]` is the node for `predicates[i]`; `default` the node of `defaultBranch`, if any.
    """

    predicates: tuple[str | None, ...]
    children: tuple[str, ...]
    default: str | None = None


@attrs.frozen
class NonNullKeyFilter:
    """The filter before a repartition sink: drops records with a null key."""


@attrs.frozen
class RunProcessor:
    """`process`, `processValues`, `addProcessor` with a class of the user, `module:Class`."""

    processor_class: str | None
    stores: tuple[str, ...] = ()
    values_only: bool = False
