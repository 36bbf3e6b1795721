"""Kafka's own table of topic configs, and what a broker refuses.

`kafka_topic_configs.json` is generated from Kafka's `LogConfig`; a test compares the two.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from headwater.compiler.configs.values import ConfigType, parse_value
from headwater.compiler.configs.values import allowed_values as describe_values

_LEAST_WITHOUT_EXPONENT, _MOST_WITHOUT_EXPONENT = 1e-3, 1e7


@cache
def topic_configs() -> Mapping[str, ConfigType]:
    """Return topic config name → its type and limits, as in the newest supported release of Kafka."""
    text = files("headwater.spec").joinpath("kafka_topic_configs.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _config(**row) for name, row in rows.items()}


def _config(values: Sequence[str] = (), extra: Sequence[int] = (), **row: Any) -> ConfigType:  # noqa: ANN401 - of JSON
    return ConfigType(values=tuple(values), extra=tuple(extra), **row)


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
    return None if parse_value(config, value) is not None else describe_values(config, value)


def is_valid(name: str, value: str) -> bool:
    """Return whether a broker of the newest supported release accepts this config."""
    return name in topic_configs() and allowed_values(name, value) is None


def broker_text(name: str, value: str) -> str:
    """Return the value as a broker returns it, which parses it by its type: `1.0` for `1`, `true` for `TRUE`.

    A value in another form would differ from the broker's in every run, and Pulumi's provider would wait
    until a timeout for the two to be equal. What the brokers may refuse is returned unchanged.

    Source: `ConfigDef#parseType` and `ConfigDef#convertToString`.
    """
    read = parse_value(topic_configs()[name], value) if name in topic_configs() else None
    match read:
        case None:
            return value
        case bool():
            return str(read).lower()
        case float():
            return _double_text(read)
        case list():
            return ",".join(read)
    return str(read)


def _double_text(number: float) -> str:
    """Return the number as Java's `Double#toString` writes it."""
    if math.isnan(number):
        return "NaN"
    if number == 0 or _LEAST_WITHOUT_EXPONENT <= abs(number) < _MOST_WITHOUT_EXPONENT:
        return repr(number)
    exact = Decimal(repr(number))
    first, *rest = map(str, exact.normalize().as_tuple().digits)
    return f"{'-' if number < 0 else ''}{first}.{''.join(rest) or '0'}E{exact.adjusted()}"
