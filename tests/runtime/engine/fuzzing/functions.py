"""The functions of `tests/oracle/java/…/Functions.java` in SQL: they make values of a format from texts."""

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from headwater.model.formats import Format
from headwater_spark.engine.serdes import serde_of


@attrs.frozen
class ValueFormat:
    """A format of values, as in `ValueFormat.java`.

    Attributes:
        text: Expression of a value → its text.
        made: Expression of a text → a value with it.
        value_of: Text → the value.
        has_hashes: Its values and keys are made of hash values of texts, so its texts have no colon.
    """

    name: str
    text: Callable[[str], str]
    made: Callable[[str], str]
    value_of: Callable[[str], Any]
    has_hashes: bool = False

    def encoded(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with a value in the format, as base 64."""
        if record.get("value") is None:
            return record
        data = serde_of(Format(self.name), SCHEMAS).serialize(self.value_of(record["value"]))
        return {**record, "value": base64.b64encode(data).decode(), "base64": True}


def _string(value: str) -> str:
    return f"string({value})"


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


def _object(text: str) -> str:
    return f"if({text} is null, null, named_struct('n', double(crc32({text}) % 1000) * 31.25D, 'v', {text}))"


def _object_of(text: str) -> dict[str, Any]:
    return {"n": float(_hash(text) % 1000) * 31.25, "v": text}


SCHEMAS: Mapping[str, str] = {
    "record": json.dumps(
        {
            "type": "record",
            "name": "Value",
            "fields": [{"name": "n", "type": "double"}, {"name": "v", "type": "string"}],
        }
    ),
    "object": json.dumps(
        {"type": "object", "properties": {"n": {"type": "number"}, "v": {"type": "string"}}}
    ),
}
"""File → schema of the formats with a schema. With a dot, a format would be the name of a class in Java."""
TEXT = ValueFormat("text", _string, str, str)
FORMATS: Mapping[str, ValueFormat] = {
    each.name: each
    for each in (
        ValueFormat("string", _string, str, str),
        ValueFormat("bytes", _string, lambda text: f"binary({text})", str.encode),
        ValueFormat(
            "long",
            _string,
            lambda text: f"crc32({text}) % 1000",
            lambda text: _hash(text) % 1000,
            has_hashes=True,
        ),
        ValueFormat(
            "integer",
            _string,
            lambda text: f"crc32({text}) % 2000000000 - 1000000000",
            lambda text: _hash(text) % 2_000_000_000 - 1_000_000_000,
            has_hashes=True,
        ),
        ValueFormat(
            "short",
            _string,
            lambda text: f"crc32({text}) % 60000 - 30000",
            lambda text: _hash(text) % 60_000 - 30_000,
            has_hashes=True,
        ),
        ValueFormat(
            "double",
            _string,
            lambda text: f"double(crc32({text}) % 1000000) * 31.25D",
            lambda text: float(_hash(text) % 1_000_000) * 31.25,
            has_hashes=True,
        ),
        ValueFormat(
            "float",
            _string,
            lambda text: f"double(crc32({text}) % 1000) * 0.25D",
            lambda text: float(_hash(text) % 1000) * 0.25,
            has_hashes=True,
        ),
        ValueFormat(
            "uuid",
            _string,
            lambda text: f"'00000000-0000-4000-8000-' || lower(lpad(hex(crc32({text})), 12, '0'))",
            lambda text: f"00000000-0000-4000-8000-{_hash(text):012x}",
            has_hashes=True,
        ),
        *(
            ValueFormat(name, lambda value: f"{value}.v", _object, _object_of)
            for name in ("json", "json:object", "avro:record")
        ),
    )
}
"""Name → format of values with which Kafka Streams is compared."""


def _before(text: str) -> str:
    return f"substring_index({text}, ':', 1)"


def _null_if(condition: str, text: str) -> str:
    return f"if({condition}, null, {text})"


@attrs.frozen
class Functions:
    """Some results are null if the functions are partial, which deletes a row."""

    where: str
    other_where: str
    key: str
    value: str
    pair_value: str
    pairs: str
    values: str
    foreign_key: str
    init: str
    no_init: str
    timestamp: str
    topic: str
    add: str
    merge: str
    join: str


def functions_of(form: ValueFormat, *, partial: bool) -> Functions:
    """Return the functions; `partial` = only the functions of the Java helper."""
    made, text = form.made, form.text("value")
    shown = f"coalesce({text}, 'null')"
    key = f"string(crc32({text}) % 4)" if form.has_hashes else _before(text)

    def text_of(value: str) -> str:
        return f"coalesce({form.text(value)}, 'null')"

    def folded(total: str, value: str) -> str:
        one, other = text_of(total), text_of(value)
        return made(f"{_before(other)} || ':' || right(replace({one} || {other}, ':', ''), 6)")

    def some(condition: str, value: str) -> str:
        return _null_if(condition, value) if partial else value

    joined = f"replace({text_of('left')} || '+' || {text_of('right')}, ':', '')"
    first_of_nulls = "1" if form.has_hashes else "d"
    return Functions(
        where=f"coalesce(length({text}), 0) % 3 <> 0",
        other_where=f"coalesce(length({text}), 0) % 2 <> 0",
        key=key,
        value=some(f"endswith({shown}, '5')", made(f"{text} || 'm'")),
        pair_value=made(f"{text} || 'p'"),
        pairs=(
            f"if(value is null, array(), array(struct(key as key, {made(text)} as value), "
            f"struct({key} as key, {made(f'{text} || {chr(39)}f{chr(39)}')} as value)))"
        ),
        values=f"if(value is null, array(), array({made(text)}, {made(f'{text} || {chr(39)}g{chr(39)}')}))",
        foreign_key=some(f"startswith({shown}, '{first_of_nulls}')", key),
        init=made("''"),
        no_init="cast(null as string)",
        timestamp=f"if(endswith({shown}, '4'), -1, timestamp + if(endswith({shown}, '6'), 7000, 0))",
        topic=f"'out-chosen-' || (coalesce(length({text}), 0) % 2)",
        add=some(f"endswith({shown}, '7')", folded("total", "value")),
        merge=folded("left", "right"),
        join=some(
            f"endswith({text_of('right')}, '9')",
            made(f"{_before(text_of('left'))} || ':' || right({joined}, 8)"),
        ),
    )


TOTAL = functions_of(TEXT, partial=False)
PARTIAL = functions_of(TEXT, partial=True)
"""The functions of the Java helper: some results are null, which deletes a row."""
