"""Spark SQL and tasks agree on random expressions that the compiler gives to Spark, and random bytes."""

import os
import random
from collections.abc import Callable

import pytest
from pyspark.sql import Column, SparkSession

from headwater.compiler.native_sql import Kind, parse_expression
from headwater.model.formats import Format
from headwater_spark.driver.queries.native import build_column, read_column, written_column
from headwater_spark.engine.expressions import compile_expression
from headwater_spark.engine.records import CurrentRecord
from headwater_spark.engine.serdes import plain_serde
from tests.runtime.engine.expressions.random_sql import Expressions, random_bytes

_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "100"))
_ROWS = 80
_BATCH = 30
_STRING = plain_serde("string")
_TEXT = Format("string")
Row = tuple[str, int, int, int, bytes | None, bytes | None]
_SCHEMA = "topic string, partition int, offset bigint, timestamp bigint, key binary, value binary"


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_both_back_ends_give_the_same(seed: int, interpreted: SparkSession) -> None:
    _compare(seed, interpreted)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(0)
def test_both_back_ends_give_the_same_for_long(interpreted: SparkSession) -> None:
    for seed in range(_FIRST, _FIRST + _LONG):
        _compare(seed, interpreted)


@pytest.mark.spark
def test_malformed_strings_are_read_as_in_tasks(interpreted: SparkSession) -> None:
    """Half of a surrogate pair is one U+FFFD, as with Kafka's `StringDeserializer`."""
    parts = ("eda080", "edb080", "eda0", "ed", "edbf41", "f09feda080", "c0af", "f4908080", "e282", "61", "")
    given = [bytes.fromhex(one + other) for one in parts for other in parts]
    rows = interpreted.createDataFrame([(each,) for each in (*given, None)], "value binary").coalesce(1)
    read = rows.select(written_column(read_column("value", _TEXT), _TEXT).alias("value")).collect()
    expected = [_STRING.serialize(_STRING.deserialize(each)) for each in given]
    assert [_bytes(row.value) for row in read] == [*expected, None]


HOSTILE = (
    "${env:HEADWATER_SASL_PASSWORD}",
    "${system:user.name}",
    "${spark.app.name}",
    "${hiveconf:spark.app.name}",
    "$value",
    "{value}",
    "%(value)s",
    "--",
    "/*",
    "`value`",
    '"',
    ";",
    ":value",
    "?",
    "a\nb",
)


@pytest.mark.spark
@pytest.mark.parametrize("is_substituted", [False, True])
def test_literals_are_not_interpreted(interpreted: SparkSession, *, is_substituted: bool) -> None:
    """Also in a session that substitutes variables: a user's settings have precedence."""
    substitute = "spark.sql.variable.substitute"
    before = interpreted.conf.get(substitute) or "true"
    interpreted.conf.set(substitute, str(is_substituted).lower())
    try:
        row = interpreted.createDataFrame([("a-topic", 0, 0, 0, b"k", b"v")], _SCHEMA)
        texts = [f"concat(value, '|', '{literal}')" for literal in HOSTILE]
        texts += [f"case when value <> '{literal}' then '{literal}' end" for literal in HOSTILE]
        read = row.withColumns({name: read_column(name, _TEXT) for name in ("key", "value")})
        (found,) = read.select(*[_native(text).alias(f"c{at}") for at, text in enumerate(texts)]).collect()
    finally:
        interpreted.conf.set(substitute, before)
    expected = [f"v|{literal}".encode() for literal in HOSTILE] + [each.encode() for each in HOSTILE]
    assert [_bytes(each) for each in found] == expected
    assert [_task(text)(("a-topic", 0, 0, 0, b"k", b"v")) for text in texts] == expected


def _compare(seed: int, interpreted: SparkSession) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same expressions in each run
    rows = [_row(chance, number) for number in range(_ROWS)]
    made = Expressions(chance)
    drawn = [chance.choice([made.text, made.whole, made.flag])(chance.randint(1, 3)) for _ in range(_BATCH)]
    texts = [text for text in drawn if parse_expression(text, Kind.TEXT, Kind.TEXT)]
    assert len(texts) > _BATCH // 2  # those with upper(lower(...)) run as tasks
    table = interpreted.createDataFrame(rows, _SCHEMA).coalesce(1)
    read = table.withColumns({name: read_column(name, _TEXT) for name in ("key", "value")})
    columns = [_native(text).alias(f"c{at}") for at, text in enumerate(texts)]
    answers = read.select(*columns).collect()
    differences = []
    for at, text in enumerate(texts):
        task = _task(text)
        for row, answer in zip(rows, answers, strict=True):
            native, ours = _bytes(answer[at]), task(row)
            if native != ours:
                differences.append(f"{text}\n  of {row}: Spark {native!r}, tasks {ours!r}")
    assert not differences, f"{len(differences)} differ\n" + "\n".join(differences[:20])


def _row(chance: random.Random, number: int) -> Row:
    time = chance.choice([0, 1, 1_700_000_000_123, 2**40])
    offset = chance.choice([number, 2**33 + number])
    return ("a-topic", chance.randrange(5), offset, time, random_bytes(chance), random_bytes(chance))


def _native(text: str) -> Column:
    """Return what a sink writes; conditions and numbers as text."""
    tree = parse_expression(text, Kind.TEXT, Kind.TEXT)
    assert tree is not None, text
    column = build_column(tree)
    return written_column(column if tree.kind is Kind.TEXT else column.cast("string"), _TEXT)


def _task(text: str) -> Callable[[Row], bytes | None]:
    current = CurrentRecord()
    evaluate = compile_expression(text, ("key", "value")).bind(current)

    def call(row: Row) -> bytes | None:
        current.record = (*row, ())
        key, value = (None if each is None else _STRING.deserialize(each) for each in row[4:])
        found = evaluate(key, value)
        if isinstance(found, bool):
            found = "true" if found else "false"
        return None if found is None else _STRING.serialize(found if isinstance(found, str) else str(found))

    return call


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
