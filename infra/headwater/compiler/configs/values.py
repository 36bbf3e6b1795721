"""The type of a config and what its validator allows: the value of a text, or the refusal.

Source: `ConfigDef#parseType` and the validators of `ConfigDef`.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from headwater.compiler.java import config_values as java
from headwater.model.problems import Problem, ProblemCode, shorten_text

Value: TypeAlias = str | int | float | bool | list[str]

_MORE_BITS = 512
_BITS = {"short": java.SHORT, "int": java.INT, "long": java.LONG}
_REPLICAS = re.compile(r"(?:[0-9]+:[0-9]+)?")
_BY_DURATION = "by_duration:"
_LARGE = 1_000_000


@attrs.frozen(kw_only=True)
class ConfigType:
    """A type of Kafka and a validator. No limit = all values of the type."""

    type: str
    """`boolean`, `short`, `int`, `long`, `double`, `string`, `list`, `class` or `password`."""
    default: str | None = None
    """The value if it is not set, as text; None = none."""
    least: float | None = None
    most: float | None = None
    extra: tuple[int, ...] = ()
    """Allowed values outside of the limits."""
    values: tuple[str, ...] = ()
    """The allowed values; for a list, the allowed values of its items."""
    any_case: bool = False
    """Whether upper and lower case of `values` are equal."""
    nonempty: bool = False
    full_items: bool = False
    """Whether no item of a list may be empty."""
    most_items: int | None = None
    form: str = ""
    """What else a text must be: `optimizations`, `offset reset`, `replicas`, or `untrimmed` (of any type)."""
    deprecated: bool = False


def parse_value(config: ConfigType, text: str) -> Value | None:
    """Return the value that Kafka reads, None if it refuses the text."""
    value = _PARSERS[config.type](config, text if config.form in _UNTRIMMED else java.trim_text(text))
    return value if value is not None and _is_valid(config, value) else None


def read_value(config: ConfigType | None, text: str | None) -> Value | None:
    """Return the value of a config: the default if it is not set or invalid, None if there is none."""
    if config is None:
        return None
    found = None if text is None else parse_value(config, text)
    return found if found is not None or config.default is None else parse_value(config, config.default)


def allowed_values(config: ConfigType, text: str = "") -> str:
    """Return the allowed values in words; `text` is the value that was found."""
    fixed = _FORMS.get(config.form) or _TYPES.get(config.type)
    if fixed is not None:
        return fixed
    if config.values:
        words = _one_of(config.values) + (" (in any case)" if config.any_case else "")
        return f"{words}, or several with commas" if config.type == "list" else words
    if config.type == "list":
        return _allowed_lists(config)
    if config.type in _BITS or config.type == "double":
        return _allowed_numbers(config, text)
    return "text that is not empty" if config.nonempty else "text"


def _allowed_lists(config: ConfigType) -> str:
    if config.most_items is not None:
        return f"a comma-separated list of at most {config.most_items} items"
    least = ", at least one" if config.nonempty else ""
    return "a comma-separated list" + (f" without empty items{least}" if config.full_items else "")


def _allowed_numbers(config: ConfigType, text: str) -> str:
    kind = "a number" if config.type == "double" else "a whole number"
    least, most = config.least, config.most
    found = java.parse_whole(java.trim_text(text), _MORE_BITS) if config.type in _BITS else None
    bound = 2 ** (_BITS.get(config.type, 1) - 1)
    if found is not None and not -bound <= found < bound:  # the type has the limits, not the validator
        least, most = -bound if least is None else least, bound - 1 if most is None else most
    if least is None:
        return kind
    limits = (
        f" of at least {_number_text(least)}"
        if most is None
        else f" from {_number_text(least)} to {_number_text(most)}"
    )
    return kind + limits + "".join(f", or {number}" for number in config.extra)


def _number_text(limit: float) -> str:
    return f"{limit:g}" if abs(limit) < _LARGE else str(int(limit))  # `g` would round it


def _one_of(words: tuple[str, ...]) -> str:
    shown = [f"`{word}`" for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


_TYPES = {"boolean": "`true` or `false`", "class": "the name of a Java class"}
_UNTRIMMED = ("untrimmed", "optimizations")
"""`StreamsBuilder#build` reads `topology.optimization` from the properties, where it is not trimmed."""
OPTIMIZATIONS = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")
_FORMS = {
    "optimizations": "`none`, `all`, or a comma-separated list of " + _one_of(tuple(sorted(OPTIMIZATIONS))),
    "offset reset": "`latest`, `earliest`, `none`, or `by_duration:` and an ISO 8601 duration such as `PT1H`",
    "replicas": "`*`, or a comma-separated list of partition:broker",
}


def _parse_class(_: ConfigType, text: str) -> str | None:
    return text if java.may_be_class(text) else None


_PARSERS: Mapping[str, Callable[[ConfigType, str], Value | None]] = {
    "boolean": lambda _, text: java.parse_boolean(text),
    **dict.fromkeys(_BITS, lambda config, text: java.parse_whole(text, _BITS[config.type])),
    "double": lambda _, text: java.parse_decimal(text),
    "string": lambda _, text: text,
    "password": lambda _, text: text,
    "list": lambda _, text: java.split_list(text),
    "class": _parse_class,
}


def _is_valid(config: ConfigType, value: Value) -> bool:
    if isinstance(value, list):
        return _is_valid_list(config, value)
    if isinstance(value, str):
        return _is_valid_text(config, value)
    return isinstance(value, bool) or value in config.extra or _is_within(config, value)


def _is_within(config: ConfigType, number: float) -> bool:
    """Return whether Kafka's `Range` accepts the number: it compares doubles, and accepts NaN."""
    number = float(number)
    return not (
        (config.least is not None and number < config.least)
        or (config.most is not None and number > config.most)
    )


def _is_valid_text(config: ConfigType, text: str) -> bool:
    if config.form == "optimizations":
        return read_optimizations(text) is not None
    if config.form == "offset reset" and text.startswith(_BY_DURATION):
        return java.is_duration(text.removeprefix(_BY_DURATION))
    if config.values:
        known = tuple(word.upper() for word in config.values) if config.any_case else config.values
        return (text.upper() if config.any_case else text) in known
    return bool(text) or not config.nonempty


def _is_valid_list(config: ConfigType, items: list[str]) -> bool:
    if config.form == "replicas":
        return items == ["*"] or all(_REPLICAS.fullmatch(java.trim_text(item)) for item in items)
    if config.most_items is not None and len(items) > config.most_items:
        return False
    if config.nonempty and not items:
        return False
    if config.full_items and "" in items:
        return False
    return not config.values or all(item in config.values for item in items)


def read_optimizations(text: str) -> frozenset[str] | None:
    """Return the enabled ones of `OPTIMIZATIONS`, None for an invalid text.

    Source: `StreamsConfig#verifyTopologyOptimizationConfigs`.
    """
    words = _split_at_commas(text)
    if words in (["none"], ["all"]):
        return frozenset(OPTIMIZATIONS if words == ["all"] else ())
    return frozenset(words) if set(words) <= set(OPTIMIZATIONS) else None


def _split_at_commas(text: str) -> list[str]:
    """Split like `String#split` of Java, which drops empty strings at the end, but not an empty text."""
    words = java.split_list(text) or [""]
    while words and not words[-1] and text:
        words.pop()
    return words


_NOT_STARTED = "{} throws {}: the application does not start."


def name_exception(exception: str, thrower: str = "Kafka Streams") -> str:
    """Return the sentence about the consequence."""
    return _NOT_STARTED.format(thrower, f"{'an' if exception[0] in 'AEIOU' else 'a'} {exception}")


@attrs.frozen(kw_only=True)
class Refusal:
    """A reason why the application does not start; `key` is the config to change."""

    key: str
    summary: str
    expected: str
    found: str
    fix: str
    why: str = name_exception("ConfigException")

    @classmethod
    def of_value(
        cls,
        key: str,
        text: str,
        expected: str,
        *,
        hint: str = "",
        why: str = name_exception("ConfigException"),
    ) -> "Refusal":
        """Return the refusal of a value; `hint` is the value that is probably meant."""
        shown = f"`{shorten_text(text)}`"
        return cls(
            key=key,
            summary=f"`{shorten_text(key)}` cannot be {shown if text else 'empty'}.",
            expected=expected,
            found=shown if text else "empty text",
            fix=f"Did you mean `{hint}`?" if hint else f"Set `{key}` to {expected}, or remove it.",
            why=why,
        )

    def to_problem(self) -> Problem:
        """Return the problem without application and location."""
        return Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=self.summary,
            expected=self.expected,
            found=self.found,
            why=self.why,
            fix=self.fix,
        )
