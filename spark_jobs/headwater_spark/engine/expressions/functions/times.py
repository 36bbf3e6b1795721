"""Dates and times in UTC. `timestamp_millis` converts the `timestamp` of a record."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

from headwater_spark.engine.expressions.casts import to_date, to_text, to_timestamp, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.table import Function, strict
from headwater_spark.engine.records import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)


def since_epoch(**unit: int) -> Callable[[Value], Value]:
    """Return a function such as `timestamp_millis`."""

    def evaluate(value: Value) -> Value:
        try:
            number = value if type(value) is float else to_whole(value)
            return _EPOCH + number * timedelta(**unit)
        except OverflowError:
            raise EvaluationError("a TIMESTAMP is out of range") from None

    return evaluate


def to_epoch(**unit: int) -> Callable[[Value], Value]:
    """Return a function such as `unix_millis`."""
    return lambda value: (to_timestamp(value) - _EPOCH) // timedelta(**unit)


def date_add(value: Value, days: Value) -> Value:
    try:
        return to_date(value) + timedelta(days=to_whole(days))
    except OverflowError:
        raise EvaluationError("a DATE is out of range") from None


def add_months(value: Value, months: Value) -> Value:
    start = to_date(value)
    count = start.year * 12 + start.month - 1 + to_whole(months)
    year, month = divmod(count, 12)
    try:
        return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))
    except ValueError:
        raise EvaluationError("a DATE is out of range") from None


def last_day(value: Value) -> Value:
    return add_months(to_date(value).replace(day=1), 1) - timedelta(days=1)


def date_trunc(unit: Value, value: Value) -> Value:
    moment, name = to_timestamp(value), to_text(unit).upper()
    if name in _TRUNCATIONS:
        return moment.replace(**_TRUNCATIONS[name])
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if name == "WEEK":
        return day - timedelta(days=day.weekday())
    if name == "QUARTER":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if name == "MILLISECOND":
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return None


def trunc(value: Value, unit: Value) -> Value:
    name = to_text(unit).upper()
    if name not in {"YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"}:
        return None
    return to_date(date_trunc(name, to_date(value)))


_DAY = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
_MONTH, _YEAR = {"day": 1, **_DAY}, {"month": 1, "day": 1, **_DAY}
_TRUNCATIONS: Mapping[str, Mapping[str, int]] = {
    "YEAR": _YEAR, "YYYY": _YEAR, "YY": _YEAR,
    "MONTH": _MONTH, "MM": _MONTH, "MON": _MONTH,
    "DAY": _DAY, "DD": _DAY,
    "HOUR": {"minute": 0, "second": 0, "microsecond": 0},
    "MINUTE": {"second": 0, "microsecond": 0},
    "SECOND": {"microsecond": 0},
    "MICROSECOND": {},
}  # fmt: skip

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LETTERS: Mapping[str, Callable[[datetime], str]] = {
    "yyyy": lambda moment: f"{moment.year:04d}",
    "yy": lambda moment: f"{moment.year % 100:02d}",
    "y": lambda moment: str(moment.year),
    "MM": lambda moment: f"{moment.month:02d}",
    "M": lambda moment: str(moment.month),
    "MMM": lambda moment: _MONTHS[moment.month - 1][:3],
    "MMMM": lambda moment: _MONTHS[moment.month - 1],
    "dd": lambda moment: f"{moment.day:02d}",
    "d": lambda moment: str(moment.day),
    "HH": lambda moment: f"{moment.hour:02d}",
    "H": lambda moment: str(moment.hour),
    "mm": lambda moment: f"{moment.minute:02d}",
    "m": lambda moment: str(moment.minute),
    "ss": lambda moment: f"{moment.second:02d}",
    "s": lambda moment: str(moment.second),
    "S": lambda moment: f"{moment.microsecond:06d}"[:1],
    "SS": lambda moment: f"{moment.microsecond:06d}"[:2],
    "SSS": lambda moment: f"{moment.microsecond:06d}"[:3],
    "SSSSSS": lambda moment: f"{moment.microsecond:06d}",
    "E": lambda moment: _DAYS[moment.weekday()][:3],
    "EEE": lambda moment: _DAYS[moment.weekday()][:3],
    "EEEE": lambda moment: _DAYS[moment.weekday()],
    "D": lambda moment: str(moment.timetuple().tm_yday),
    "DDD": lambda moment: f"{moment.timetuple().tm_yday:03d}",
}


def date_format(value: Value, pattern: Value) -> Value:
    """Format with the letters of `_LETTERS`; text in single quotes is literal."""
    moment, text, parts, at = to_timestamp(value), to_text(pattern), [], 0
    while at < len(text):
        letter = text[at]
        if letter == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise EvaluationError("a date pattern has an unclosed quote")
            parts.append(text[at + 1 : end] or "'")
            at = end + 1
            continue
        run = len(text[at:]) - len(text[at:].lstrip(letter))
        if letter.isascii() and letter.isalpha():
            if letter * run not in _LETTERS:
                raise EvaluationError(f"a date pattern has {letter * run}, which is not supported")
            parts.append(_LETTERS[letter * run](moment))
        else:
            parts.append(letter * run)
        at += run
    return "".join(parts)


def _part(read: Callable[[datetime], Value]) -> Function:
    return strict(lambda value: read(to_timestamp(value)), 1)


def milliseconds(value: Value) -> int:
    """Return the timestamp of a record, in milliseconds, from a TIMESTAMP or a number; null is -1."""
    if value is None:
        return -1
    if isinstance(value, date):
        return int(to_epoch(milliseconds=1)(value))
    return int(to_whole(value))


FUNCTIONS: Mapping[str, Function] = {
    "timestamp_seconds": strict(since_epoch(seconds=1), 1),
    "timestamp_millis": strict(since_epoch(milliseconds=1), 1),
    "timestamp_micros": strict(since_epoch(microseconds=1), 1),
    "unix_seconds": strict(to_epoch(seconds=1), 1),
    "unix_millis": strict(to_epoch(milliseconds=1), 1),
    "unix_micros": strict(to_epoch(microseconds=1), 1),
    "unix_date": strict(lambda value: (to_date(value) - _FIRST_DAY).days, 1),
    "date_from_unix_date": strict(lambda days: date_add(_FIRST_DAY, days), 1),
    "to_date": strict(to_date, 1),
    "to_timestamp": strict(to_timestamp, 1),
    "date_add": strict(date_add, 2),
    "dateadd": strict(date_add, 2),
    "date_sub": strict(lambda value, days: date_add(value, -to_whole(days)), 2),
    "datediff": strict(lambda end, start: (to_date(end) - to_date(start)).days, 2),
    "date_diff": strict(lambda end, start: (to_date(end) - to_date(start)).days, 2),
    "add_months": strict(add_months, 2),
    "last_day": strict(last_day, 1),
    "date_trunc": strict(date_trunc, 2),
    "trunc": strict(trunc, 2),
    "date_format": strict(date_format, 2),
    "make_date": strict(
        lambda year, month, day: to_date(f"{to_whole(year):04d}-{to_whole(month)}-{to_whole(day)}"), 3
    ),
    "year": _part(lambda moment: moment.year),
    "quarter": _part(lambda moment: (moment.month + 2) // 3),
    "month": _part(lambda moment: moment.month),
    "day": _part(lambda moment: moment.day),
    "dayofmonth": _part(lambda moment: moment.day),
    "dayofweek": _part(lambda moment: moment.isoweekday() % 7 + 1),
    "weekday": _part(lambda moment: moment.weekday()),
    "dayofyear": _part(lambda moment: moment.timetuple().tm_yday),
    "weekofyear": _part(lambda moment: moment.isocalendar().week),
    "hour": _part(lambda moment: moment.hour),
    "minute": _part(lambda moment: moment.minute),
    "second": _part(lambda moment: moment.second),
}
