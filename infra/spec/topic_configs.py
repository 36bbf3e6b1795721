"""Kafka's own table of topic configs, and what a broker refuses.

`kafka_topic_configs.json` is generated from Kafka's `LogConfig`; a test compares the two.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from infra.spec.phrases import one_of

_BLANK = "".join(map(chr, range(0x21)))
"""What Java's `String#trim` removes."""
_WHOLE = re.compile(r"[-+]?[0-9]+")
_DECIMAL = re.compile(r"[-+]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[dDfF]?)")
_REPLICAS = re.compile(r"(?:[0-9]+:[0-9]+)?")
_SEPARATOR = re.compile(r"\s*,\s*")
_BITS = {"int": 31, "long": 63}
_LEAST_WITHOUT_EXPONENT, _MOST_WITHOUT_EXPONENT = 1e-3, 1e7


@attrs.frozen(kw_only=True)
class TopicConfig:
    """A topic config: its type and what its validator allows. No limit = all values of the type."""

    type: str
    least: float | None = None
    most: float | None = None
    values: tuple[str, ...] = ()
    extra: tuple[int, ...] = ()
    """Allowed values outside of the limits."""
    is_replica_list: bool = False


@cache
def topic_configs() -> Mapping[str, TopicConfig]:
    """Return topic config name → its type and limits, as in the newest supported release of Kafka."""
    text = files("infra.spec").joinpath("kafka_topic_configs.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _config(**row) for name, row in rows.items()}


def _config(values: Sequence[str] = (), extra: Sequence[int] = (), **row: Any) -> TopicConfig:  # noqa: ANN401 - of JSON
    return TopicConfig(values=tuple(values), extra=tuple(extra), **row)


def is_allowed(name: str, patterns: Collection[str]) -> bool:
    """Return whether `name` is one of `patterns`, or begins like one that ends with a star."""
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )


def allowed_values(name: str, value: str) -> str | None:
    """Return the values that the config `name` allows if `value` is not one of them, else None.

    Source: `LogConfig#validate`, which parses each value by its type and then checks it.
    """
    config = topic_configs()[name]
    return None if _CHECKS[config.type](config, value.strip(_BLANK)) else _phrase(config)


def is_valid(name: str, value: str) -> bool:
    """Return whether a broker of the newest supported release accepts this config."""
    return name in topic_configs() and allowed_values(name, value) is None


def broker_text(name: str, value: str) -> str:
    """Return the value as a broker returns it, which parses it by its type: `1.0` for `1`, `true` for `TRUE`.

    A value in another form would differ from the broker's in every run, and Pulumi's provider would wait
    until a timeout for the two to be equal. What the brokers may refuse is returned unchanged.

    Source: `ConfigDef#parseType` and `ConfigDef#convertToString`.
    """
    if not is_valid(name, value):
        return value
    text = value.strip(_BLANK)
    match topic_configs()[name].type:
        case "boolean":
            return text.lower()
        case "int" | "long":
            return str(int(text))
        case "double":
            return _double_text(float(text.rstrip("dDfF")))
        case "list":
            return ",".join(_SEPARATOR.split(text))
    return text


def _double_text(number: float) -> str:
    """Return the number as Java's `Double#toString` writes it."""
    if math.isnan(number):
        return "NaN"
    if number == 0 or _LEAST_WITHOUT_EXPONENT <= abs(number) < _MOST_WITHOUT_EXPONENT:
        return repr(number)
    exact = Decimal(repr(number))
    first, *rest = map(str, exact.normalize().as_tuple().digits)
    return f"{'-' if number < 0 else ''}{first}.{''.join(rest) or '0'}E{exact.adjusted()}"


def _is_boolean(_: TopicConfig, text: str) -> bool:
    return text.lower() in {"true", "false"}


def _is_whole(config: TopicConfig, text: str) -> bool:
    if not _WHOLE.fullmatch(text) or len(text) > 64:  # noqa: PLR2004 - longer than any number of Java
        return False
    number, bits = int(text), _BITS[config.type]
    return -(2**bits) <= number < 2**bits and (_is_within(config, number) or number in config.extra)


def _is_decimal(config: TopicConfig, text: str) -> bool:
    return bool(_DECIMAL.fullmatch(text)) and _is_within(config, float(text.rstrip("dDfF")))


def _is_within(config: TopicConfig, number: float) -> bool:
    """Return whether Kafka's `Range` accepts the number; it compares so that it accepts NaN."""
    return not (
        (config.least is not None and number < config.least)
        or (config.most is not None and number > config.most)
    )


def _is_text(config: TopicConfig, text: str) -> bool:
    return not config.values or text in config.values


def _is_list(config: TopicConfig, text: str) -> bool:
    items = _SEPARATOR.split(text) if text else []
    if config.is_replica_list:
        return items == ["*"] or all(_REPLICAS.fullmatch(item.strip(_BLANK)) for item in items)
    return not config.values or all(item in config.values for item in items)


_CHECKS: Mapping[str, Callable[[TopicConfig, str], bool]] = {
    "boolean": _is_boolean,
    "int": _is_whole,
    "long": _is_whole,
    "double": _is_decimal,
    "string": _is_text,
    "list": _is_list,
}


def _phrase(config: TopicConfig) -> str:
    if config.is_replica_list:
        return "`*`, or a comma-separated list of partition:broker"
    if config.type == "boolean":
        return "`true` or `false`"
    if config.values:
        return one_of(config.values) + (", or several with commas" if config.type == "list" else "")
    kind = "a number" if config.type == "double" else "a whole number"
    least, most = _number(config.least), _number(config.most)
    limits = f" from {least} to {most}" if least and most else f" of at least {least}" if least else ""
    others = "".join(f", or {number}" for number in config.extra)
    return kind + limits + others


def _number(limit: float | None) -> str:
    return "" if limit is None else f"{limit:g}" if limit < 1_000_000 else str(int(limit))  # noqa: PLR2004 - `g` would round it
