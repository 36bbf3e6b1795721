"""PURE. From an application's config to its static partitioner, or to what is wrong with the config."""

from collections.abc import Callable, Mapping

from infra.model.problems import Location, Problem, ProblemCode
from spark_jobs.runtime.engine.partitioners.built_in import InitialHash, KeyPrefix, Range
from spark_jobs.runtime.engine.partitioners.protocol import StaticStreamPartitioner

CLASS = "static.partitioner.class"
INITIAL = "static.partitioner.initial.partitions"
TABLE = "static.partitioner.table"
SEPARATOR = "static.partitioner.separator"
BOUNDS = "static.partitioner.bounds"


class _BadValueError(Exception):
    """`args`: the key, what is expected, what was found."""


def built_in(
    name: str, config: Mapping[str, str], at: Location
) -> tuple[StaticStreamPartitioner | None, tuple[Problem, ...]]:
    """Return the built-in partitioner `name`, configured; None with the problems of its config.

    A name with a colon is a class of the user's: neither a partitioner nor a problem is returned.
    """
    if ":" in name:
        return None, ()
    try:
        return _BUILT_IN.get(name, _unknown)(config), ()
    except _BadValueError as error:
        key, expected, found = error.args
        problem = Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"The static partitioner `{name}` cannot be made: `{key}` is {found or 'not set'}.",
            expected=expected,
            found=found or "nothing",
            why="A key must stay on its partition for good, so nothing of this is guessed.",
            fix=f"Set `{key}` in the application's config.",
            location=at,
        )
        return None, (problem,)


def _initial_hash(config: Mapping[str, str]) -> StaticStreamPartitioner:
    return InitialHash(_whole(INITIAL, config.get(INITIAL, ""), least=1))


def _key_prefix(config: Mapping[str, str]) -> StaticStreamPartitioner:
    table = {}
    for entry in filter(None, (each.strip() for each in config.get(TABLE, "").split(","))):
        prefix, equals, partition = entry.rpartition("=")
        if not equals or not prefix:
            raise _BadValueError(TABLE, "prefix=partition, separated by commas", entry)
        table[prefix] = _whole(TABLE, partition, least=0)
    initial = _whole(INITIAL, config[INITIAL], least=1) if INITIAL in config else None
    if not table and initial is None:
        raise _BadValueError(INITIAL, "the number of partitions at the beginning", "")
    return KeyPrefix(table, config.get(SEPARATOR) or ":", initial)


def _range(config: Mapping[str, str]) -> StaticStreamPartitioner:
    bounds = tuple(each.strip() for each in config.get(BOUNDS, "").split(",") if each.strip())
    if not bounds or list(bounds) != sorted(set(bounds)):
        raise _BadValueError(BOUNDS, "texts in ascending order, separated by commas", ",".join(bounds))
    return Range(bounds)


def _unknown(config: Mapping[str, str]) -> StaticStreamPartitioner:
    raise _BadValueError(CLASS, f"{', '.join(_BUILT_IN)}, or module:Class", config.get(CLASS, ""))


def _whole(key: str, text: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise _BadValueError(key, f"a whole number from {least} on", text)
    return int(text)


_BUILT_IN: Mapping[str, Callable[[Mapping[str, str]], StaticStreamPartitioner]] = {
    "initial-hash": _initial_hash,
    "key-prefix": _key_prefix,
    "range": _range,
}
