"""The functions of `tests/oracle/java/…/Functions.java` in SQL, on values as text."""

import attrs

_TEXT = "string(value)"
_SHOWN = f"coalesce({_TEXT}, 'null')"


def _before(text: str) -> str:
    return f"substring_index({text}, ':', 1)"


def _folded(total: str, value: str) -> str:
    one, other = (f"coalesce(string({each}), 'null')" for each in (total, value))
    return f"{_before(other)} || ':' || right(replace({one} || {other}, ':', ''), 6)"


def _joined() -> str:
    left, right = ("coalesce(string(left), 'null')", "coalesce(string(right), 'null')")
    return f"{_before(left)} || ':' || right(replace({left} || '+' || {right}, ':', ''), 8)"


@attrs.frozen
class Functions:
    """The functions without null results for values that are not null."""

    where: str = "coalesce(length(string(value)), 0) % 3 <> 0"
    other_where: str = "coalesce(length(string(value)), 0) % 2 <> 0"
    key: str = _before(_TEXT)
    value: str = f"{_TEXT} || 'm'"
    pair_value: str = f"{_TEXT} || 'p'"
    pairs: str = (
        f"if(value is null, array(), array(struct(key as key, {_TEXT} as value), "
        f"struct({_before(_TEXT)} as key, {_TEXT} || 'f' as value)))"
    )
    values: str = f"if(value is null, array(), array({_TEXT}, {_TEXT} || 'g'))"
    foreign_key: str = _before(_TEXT)
    init: str = "''"
    no_init: str = "cast(null as string)"
    timestamp: str = f"if(endswith({_SHOWN}, '4'), -1, timestamp + if(endswith({_SHOWN}, '6'), 7000, 0))"
    topic: str = f"'out-chosen-' || (coalesce(length({_TEXT}), 0) % 2)"
    add: str = _folded("total", "value")
    merge: str = _folded("left", "right")
    join: str = _joined()


TOTAL = Functions()


def _null_if(condition: str, text: str) -> str:
    return f"if({condition}, null, {text})"


PARTIAL = Functions(
    value=_null_if(f"endswith({_SHOWN}, '5')", TOTAL.value),
    foreign_key=_null_if(f"startswith({_SHOWN}, 'd')", TOTAL.foreign_key),
    add=_null_if(f"endswith({_SHOWN}, '7')", TOTAL.add),
    join=_null_if("endswith(coalesce(string(right), 'null'), '9')", TOTAL.join),
)
"""The functions of the Java helper: some results are null, which deletes a row."""
