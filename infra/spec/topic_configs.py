"""Kafka's own table of topic configs, and what a broker refuses.

`kafka_topic_configs.json` is generated from Kafka's `LogConfig`; a test compares the two.
"""

import json
import math
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from infra.compiler.configs.table import read_row
from infra.compiler.configs.values import ConfigType, parse_value
from infra.compiler.configs.values import allowed_values as describe_values

_LEAST_WITHOUT_EXPONENT, _MOST_WITHOUT_EXPONENT = 1e-3, 1e7


@cache
def topic_configs() -> Mapping[str, ConfigType]:
    """Return topic config name → its type and limits in the newest supported release of Kafka that has it."""
    return {name: rows[-1] for name, rows in _releases().items()}


@cache
def _releases() -> Mapping[str, tuple[ConfigType, ...]]:
    """Return topic config name → its types and limits in the supported releases, each different one once."""
    text = files("infra.spec").joinpath("kafka_topic_configs.json").read_text(encoding="utf-8")
    table: dict[str, list[dict[str, Any]]] = json.loads(text)
    return {name: tuple(map(read_row, rows)) for name, rows in table.items()}


def is_allowed(name: str, patterns: Collection[str]) -> bool:
    """Return whether `name` is one of `patterns`, or begins like one that ends with a star."""
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )


def allowed_values(name: str, value: str) -> str | None:
    """Return the values that the config `name` allows if no supported release accepts `value`, else None.

    `pulumi up` asks the brokers about a value that only some releases accept.

    Source: `LogConfig#validate`, which parses each value by its type and then checks it.
    """
    if any(parse_value(config, value) is not None for config in _releases()[name]):
        return None
    return describe_values(topic_configs()[name], value)


def is_valid(name: str, value: str) -> bool:
    """Return whether brokers of a supported release accept this config."""
    return name in topic_configs() and allowed_values(name, value) is None


def broker_text(name: str, value: str) -> str:
    """Return the value as a broker returns it, which parses it by its type: `1.0` for `1`, `true` for `TRUE`.

    A value in another form would differ from the broker's in every run, and Pulumi's provider would wait
    until a timeout for the two to be equal. What the brokers may refuse is returned unchanged.

    Source: `ConfigDef#parseType` and `ConfigDef#convertToString`.
    """
    configs = _releases().get(name, ())
    read = next((read for config in configs if (read := parse_value(config, value)) is not None), None)
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
