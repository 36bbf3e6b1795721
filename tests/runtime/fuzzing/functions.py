"""The functions of `tests/oracle/java/…/Functions.java` in SQL: over the text of anything, and total."""


def _before(text: str) -> str:
    return f"substring_index({text}, ':', 1)"


def _folded(total: str, value: str) -> str:
    one, other = (f"coalesce(string({each}), 'null')" for each in (total, value))
    return f"{_before(other)} || ':' || right(replace({one} || {other}, ':', ''), 6)"


def _joined() -> str:
    left, right = ("coalesce(string(left), 'null')", "coalesce(string(right), 'null')")
    return f"{_before(left)} || ':' || right(replace({left} || '+' || {right}, ':', ''), 8)"


TEXT = "string(value)"
KEY = _before(TEXT)
WHERE = "coalesce(length(string(value)), 0) % 3 <> 0"
VALUE = f"{TEXT} || 'm'"
PAIR = {"key": KEY, "value": f"{TEXT} || 'p'"}
PAIRS = (
    f"if(value is null, array(), array(struct(key as key, {TEXT} as value), "
    f"struct({KEY} as key, {TEXT} || 'f' as value)))"
)
VALUES = f"if(value is null, array(), array({TEXT}, {TEXT} || 'g'))"
INIT = "''"
ADD = _folded("total", "value")
MERGE = _folded("left", "right")
JOIN = _joined()
