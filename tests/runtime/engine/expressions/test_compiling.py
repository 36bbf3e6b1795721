"""Which expressions compile, which are rejected, and that no text of them is executed."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_spark.engine.expressions import (
    EvaluationError,
    ExpressionError,
    compile_expression,
    milliseconds,
)
from headwater_spark.engine.expressions.faults import DEEPEST, LONGEST_TEXT
from headwater_spark.engine.records import CurrentRecord, Value, Windowed


def evaluate(text: str, **values: Value) -> Value:
    return compile_expression(text, tuple(values)).bind(CurrentRecord())(*values.values())


def faults(text: str, *names: str) -> list[str]:
    with pytest.raises(ExpressionError) as rejected:
        compile_expression(text, names or ("key", "value"))
    return [f"{fault.line}:{fault.column} {fault.summary}" for fault in rejected.value.faults]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("soundex(value)", ["1:9 the function `soundex` is not supported"]),
        ("now()", ["1:1 the function `now` is not supported"]),
        ("valeu.amount + nope", ["1:7 there is no value `valeu`", "1:16 there is no value `nope`"]),
        ("upper(value, 1)", ["1:7 `upper` is called with 2 argument(s)"]),
        ("'it''s'", ["1:1 adjacent strings"]),
        ("value rlike '('", ["1:1 the pattern is not a regular expression"]),
        ("transform(value, 1)", ["1:1 a lambda is expected"]),
        ("(select 1)", ["1:1 `SUBQUERY` is not supported"]),
        ("row_number() over (order by key)", ["1:26 `WINDOW` is not supported"]),
        ("cast(value as decimal(10, 2))", ["1:6 a cast to DECIMAL(10, 2) is not supported"]),
        ("value.*", ["1:7 `*` is used where one value is expected"]),
        ("x -> x", ["1:6 `JSONEXTRACT` is not supported"]),
        ("key; value", ["1:1 it is more than one expression"]),
        ("", ["1:1 it is empty"]),
    ],
)
def test_faults_are_reported_with_their_location(text: str, expected: list[str]) -> None:
    found = faults(text)
    assert [fault.partition(" ")[2] for fault in found] == [each.partition(" ")[2] for each in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.customer", "`value` is a STRING, which has no fields or items"),
        ("key['customer']", "`key` is a BIGINT, which has no fields or items"),
        ("upper(value.a.b)", "`value` is a STRING, which has no fields or items"),
        ("(value).a", "`(value)` is a STRING, which has no fields or items"),
        ("topic.name", "`topic` is a STRING, which has no fields or items"),
    ],
)
def test_fields_of_single_values_are_faults(text: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as rejected:
        compile_expression(text, ("key", "value"), {"key": "BIGINT", "value": "STRING"})
    assert [fault.summary for fault in rejected.value.faults] == [expected]


@pytest.mark.parametrize(
    "text",
    ["value", "get_json_object(value, '$.a')", "transform(array(1), value -> value.a)", "headers[0].key"],
)
def test_single_values_can_be_used_without_fields(text: str) -> None:
    compile_expression(text, ("key", "value"), {"key": "BIGINT", "value": "STRING"})


def test_syntax_errors_have_a_location() -> None:
    (fault,) = faults("value +\n  * 2 )")
    assert fault.startswith("2:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.amount > >", "1:16 it is not SQL (an operand or an argument is missing)"),
        ("concat(value", "1:12 it is not SQL (`)` is missing)"),
        ("value.a)", "1:8 it is not SQL (unexpected token)"),
        ("cast(value as)", "1:14 it is not SQL (expected TYPE after CAST)"),
        ("'abc", "1:1 it is not SQL"),
    ],
)
def test_syntax_errors_name_no_classes_of_the_parser(text: str, expected: str) -> None:
    (fault,) = faults(text)
    assert fault == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "value.__class__.__mro__",
        "'); import os; print('",
        "'\\'); raise SystemExit #'",
        "value['__class__']",
        "`v0); import os; (`",
        "struct(1 as `x}); import os`)",
        "transform(value.items, `__import__` -> `__import__`)",
        "exec('1')",
        "'{0.__class__}'",
        '"""',
    ],
)
def test_malicious_texts_are_data_or_faults(text: str) -> None:
    """They are never executed: they are rejected, or return their own text, null or an object."""
    try:
        found = evaluate(text, key="k", value={"items": [1]})
    except (ExpressionError, EvaluationError):
        return
    assert found is None or isinstance(found, str | dict | list)


def test_generated_source_has_no_other_built_ins() -> None:
    compiled = compile_expression("concat(key, 'x')", ("key",))
    evaluate_ = compiled.bind(CurrentRecord())
    assert set(evaluate_.__globals__["__builtins__"]) == {"type", "str", "int", "dict", "list"}


def test_limits_on_size_and_depth() -> None:
    assert faults("(" * (DEEPEST + 9) + "1" + ")" * (DEEPEST + 9)) == ["1:1 it is too large"]
    assert faults("(" * 9000 + "1" + ")" * 9000) == ["1:1 it is too large"]
    assert faults("1" + " " * LONGEST_TEXT) == ["1:1 it is too large"]
    assert faults(" + ".join(["key"] * 3000)) == ["1:1 it is too large"]
    assert faults("1" * 5_000) == ["1:1 it is too large"]
    assert faults("key + 1." + "1" * 5_000) == ["1:1 it is too large"]


@pytest.mark.parametrize("name", ["struct", "named_struct", "array", "map", "row", "decimal", "nullable"])
def test_nested_types_are_parsed_in_a_limited_time(name: str) -> None:
    """The parser tries to read a type first, at each level: twice the time for each."""
    started = time.process_time()
    with suppress(ExpressionError):
        compile_expression(f"{name}(" * 32 + "value" + ")" * 32, ("value",))
    assert time.process_time() - started < 5


def test_nested_structs_are_supported() -> None:
    assert evaluate("struct(" * 5 + "value as a" + ") as a" * 4 + ")", value=1)


@pytest.mark.parametrize(
    "text",
    [
        "replace(repeat('x', 100000), 'x', repeat('y', 1000))",
        "regexp_replace(repeat('x', 100000), 'x', repeat('y', 1000))",
        "regexp_replace(repeat('x', 10000), '(x+)', repeat('$1', 2000))",
        "concat(repeat('x', 9000000), repeat('y', 9000000))",
        "repeat('x', 9000000) || repeat('y', 9000000)",
        "concat_ws(',', array_repeat(repeat('x', 100000), 1000))",
        "array_join(array_repeat(repeat('x', 100000), 1000), ',')",
        "aggregate(sequence(1, 60), 'ab', (a, x) -> concat(a, a))",
        "aggregate(sequence(1, 60), array(1), (a, x) -> concat(a, a))",
        "flatten(array_repeat(array_repeat('x', 10000), 1000))",
        "lpad(value, 2000000000, 'x')",
        "space(1000000000)",
        "sequence(1, 100000000)",
    ],
)
def test_the_size_of_results_is_limited(text: str) -> None:
    with pytest.raises(EvaluationError, match=r"exceeds 10000000 characters|exceeds 1000000 elements"):
        evaluate(text, value="v")


def test_long_replacements_within_the_limit_are_those_of_short_ones() -> None:
    text = "regexp_replace(concat(repeat('ab', 300), repeat('x', 6000)), '(a)(b)', repeat('$2$1', 500))"
    assert evaluate(text) == "ba" * 500 * 300 + "x" * 6000


def test_record_metadata_is_read_unless_it_is_a_parameter() -> None:
    current = CurrentRecord()
    current.record = ("orders", 3, 42, 1000, b"k", b"v", (("trace", b"1"),))
    text = "struct(topic, partition, offset, timestamp, headers[0].key as header)"
    found = compile_expression(text, ("key",)).bind(current)("k")
    assert found == {"topic": "orders", "partition": 3, "offset": 42, "timestamp": 1000, "header": "trace"}
    assert compile_expression("timestamp", ("timestamp",)).bind(current)(7) == 7


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("timestamp_millis(1500)", 1500),
        ("to_date('1970-01-02')", 86_400_000),
        ("'1500'", 1500),
        ("1500", 1500),
        ("null", -1),
    ],
)
def test_record_timestamps_are_timestamps_or_milliseconds(text: str, time: int) -> None:
    assert milliseconds(evaluate(text)) == time


def test_fields_of_json_objects() -> None:
    value = {"a": {"b": 1}, "list": [{"x": 1}, {}], "select": 2}
    assert evaluate("value.a.b", value=value) == 1
    assert evaluate("value.nope.b", value=value) is None
    assert evaluate("value.list.x", value=value) == [1, None]
    assert evaluate("value.`select`", value=value) == 2
    assert evaluate("struct(value.a.*, value.list)", value=value) == {"b": 1, "list": value["list"]}
    assert evaluate("struct(value.*)", value=None) == {}
    with pytest.raises(EvaluationError, match="STRING"):
        evaluate("value.a", value="text")


def test_windowed_keys_have_fields() -> None:
    key = Windowed("anna", 1000, 2000)
    assert evaluate("concat(key.key, '@', key.start, '-', key.end)", key=key) == "anna@1000-2000"


def test_unneeded_arguments_are_not_evaluated() -> None:
    assert evaluate("coalesce(value, 1 / 0)", value=1) == 1
    assert evaluate("case when value > 0 then value else 1 / 0 end", value=1) == 1
    assert evaluate("value < 0 and 1 / 0 > 1", value=1) is False
    assert evaluate("value > 0 or 1 / 0 > 1", value=1) is True


def test_evaluation_errors_name_types_but_no_content() -> None:
    with pytest.raises(EvaluationError) as fault:
        evaluate("value.secret > 5", value={"secret": "private"})
    assert "private" not in str(fault.value)


longs = st.integers(-(2**63), 2**63 - 1)


@given(left=longs, right=longs)
def test_whole_numbers_never_exceed_64_bits(left: int, right: int) -> None:
    for symbol, exact in (("+", left + right), ("-", left - right), ("*", left * right)):
        if -(2**63) <= exact < 2**63:
            assert evaluate(f"a {symbol} b", a=left, b=right) == exact
        else:
            with pytest.raises(EvaluationError, match="64 bits"):
                evaluate(f"a {symbol} b", a=left, b=right)


@given(left=longs, right=longs.filter(bool))
def test_division_and_remainder_are_consistent(left: int, right: int) -> None:
    if (left, right) != (-(2**63), -1):
        assert evaluate("(a div b) * b + a % b", a=left, b=right) == left
        assert 0 <= evaluate("pmod(a, b)", a=left, b=abs(right)) < abs(right)


three = st.sampled_from([True, False, None])


@given(values=st.fixed_dictionaries({"a": three, "b": three, "c": three}))
def test_three_valued_logic(values: dict[str, bool | None]) -> None:
    for one, other in (
        ("not (a and b)", "(not a) or (not b)"),
        ("a and (b or c)", "(a and b) or (a and c)"),
        ("a or b", "b or a"),
        ("a <=> b", "(a = b) is true or (a is null and b is null)"),
    ):
        assert evaluate(one, **values) is evaluate(other, **values)


@settings(max_examples=4 * settings().max_examples)
@given(st.text(max_size=60))
def test_any_text_compiles_or_is_rejected(text: str) -> None:
    with suppress(ExpressionError):
        compile_expression(text, ("key", "value"))


@given(st.floats())
def test_doubles_cast_to_strings_can_be_cast_back(number: float) -> None:
    text = evaluate("cast(value as string)", value=number)
    assert evaluate("cast(value as double) <=> cast(written as double)", value=number, written=text) is True


@pytest.mark.parametrize("function", ["md5", "sha1", "crc32", "base64", "hex", "octet_length", "binary"])
def test_half_of_a_surrogate_pair_is_encoded_as_a_question_mark(function: str) -> None:
    """Java does so; only escapes of JSON have such halves, and Spark reads them as null."""
    assert evaluate(f"{function}(value)", value="a\ud800b\udc00") == evaluate(f"{function}('a?b?')")


def test_json_has_half_of_a_surrogate_pair_as_an_escape() -> None:
    assert evaluate("to_json(value)", value=["\udc00"]) == r'["\uDC00"]'


def test_get_json_object_writes_as_spark() -> None:
    """Spark writes objects and arrays to bytes, where Jackson escapes characters beyond 16 bits."""
    assert evaluate("get_json_object(value, '$.a')", value='{"a":["\U0001f600é"]}') == '["\\uD83D\\uDE00é"]'
    assert evaluate("get_json_object(value, '$.a')", value='{"a":"\U0001f600"}') == "\U0001f600"
    assert evaluate("to_json(value)", value=["\U0001f600é"]) == '["\U0001f600é"]'
    assert evaluate("get_json_object(value, '$.a')", value='{"a":1} x') == "1"
    assert evaluate("get_json_object(value, '$.a')", value='\ufeff{"a":1}') is None
    assert evaluate("json_array_length(value)", value="[1] x") == 1


def test_a_value_that_is_nested_too_deeply_has_no_json() -> None:
    deep: Value = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvaluationError, match="nested too deeply"):
        evaluate("to_json(value)", value=deep)
    assert evaluate("get_json_object(value, '$')", value="[" * 100_000 + "]" * 100_000) is None
