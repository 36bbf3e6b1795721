"""Constants."""

from collections.abc import Mapping
from datetime import timedelta

from sqlglot import exp

from spark_jobs.runtime.engine.expressions import operations as op
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.source import constant


def _literal(generator: Emitting, node: exp.Literal) -> str:
    text = str(node.this)
    if node.is_string:
        return constant(text)
    if text.isdigit():
        number = int(text)
        if number > op.LONG_MAX + 1:
            return generator.fault(node, "a whole number beyond 64 bits", "a BIGINT")
        return constant(number)
    try:
        return constant(float(text))
    except ValueError:
        return generator.fault(node, "a number of unknown form")


def _null(_generator: Emitting, _node: exp.Null) -> str:
    return "None"


def _boolean(_generator: Emitting, node: exp.Boolean) -> str:
    return constant(bool(node.this))


_UNITS = {
    "WEEK": "weeks", "DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds",
    "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip


def _interval(generator: Emitting, node: exp.Interval) -> str:
    unit = str(node.args.get("unit") or "").upper().removesuffix("S")
    try:
        amount = float(node.this.name)
        return generator.source.object(timedelta(**{_UNITS[unit]: amount}))
    except (KeyError, ValueError, AttributeError, OverflowError):
        return generator.fault(node, "an interval of unknown form", "such as INTERVAL 5 MINUTES")


LITERALS: Mapping[type, Emitter] = {
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Interval: _interval,
}
