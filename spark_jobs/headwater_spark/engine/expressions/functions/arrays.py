"""Arrays and objects (Spark's structs and maps)."""

from collections.abc import Mapping
from functools import cmp_to_key

from headwater_spark.engine.expressions.casts import to_text, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError, check_elements
from headwater_spark.engine.expressions.functions.strings import join_texts
from headwater_spark.engine.expressions.functions.table import Function, lenient, strict
from headwater_spark.engine.expressions.operations import compare, compare_members, no_fit, same
from headwater_spark.engine.records import Value


def array(value: Value, what: str) -> list[Value]:
    return value if type(value) is list else no_fit(what, value)


def size(value: Value) -> Value:
    if type(value) in {list, dict}:
        return len(value)
    return no_fit("size", value)


def element_at(value: Value, at: Value) -> Value:
    """Return the element of an array, from 1 (negative: from the end), or the field of an object."""
    if type(value) is dict:
        return value.get(to_text(at))
    members, index = array(value, "element_at"), to_whole(at)
    if index == 0:
        raise EvaluationError("the elements of `element_at` start at 1")
    if abs(index) > len(members):
        raise EvaluationError("the index of `element_at` is out of range of its ARRAY")
    return members[index - 1 if index > 0 else index]


def try_element_at(value: Value, at: Value) -> Value:
    if type(value) is list and to_whole(at) and abs(to_whole(at)) > len(value):
        return None
    return element_at(value, at)


def get(value: Value, at: Value) -> Value:
    members, index = array(value, "get"), to_whole(at)
    return members[index] if 0 <= index < len(members) else None


def array_contains(value: Value, wanted: Value) -> Value:
    """Return null if the value is not found and an element is null."""
    members = array(value, "array_contains")
    if any(member is not None and compare(member, wanted) == 0 for member in members):
        return True
    return None if None in members else False


def array_position(value: Value, wanted: Value) -> Value:
    for position, member in enumerate(array(value, "array_position"), start=1):
        if member is not None and compare(member, wanted) == 0:
            return position
    return 0


def array_distinct(value: Value) -> Value:
    kept: list[Value] = []
    for member in array(value, "array_distinct"):
        if not any(same(member, other) for other in kept):
            kept.append(member)
    return kept


def array_union(left: Value, right: Value) -> Value:
    return array_distinct([*array(left, "array_union"), *array(right, "array_union")])


def array_except(left: Value, right: Value) -> Value:
    without = array(right, "array_except")
    return [each for each in array_distinct(left) if not any(same(each, other) for other in without)]


def array_intersect(left: Value, right: Value) -> Value:
    within = array(right, "array_intersect")
    return [each for each in array_distinct(left) if any(same(each, other) for other in within)]


def arrays_overlap(left: Value, right: Value) -> Value:
    one, other = array(left, "arrays_overlap"), array(right, "arrays_overlap")
    if any(each is not None and any(m is not None and compare(each, m) == 0 for m in other) for each in one):
        return True
    return None if one and other and (None in one or None in other) else False


def array_remove(value: Value, unwanted: Value) -> Value:
    members = array(value, "array_remove")
    return [member for member in members if member is None or compare(member, unwanted) != 0]


def array_append(value: Value, member: Value) -> Value:
    return None if value is None else [*array(value, "array_append"), member]


def array_prepend(value: Value, member: Value) -> Value:
    return None if value is None else [member, *array(value, "array_prepend")]


def array_join(value: Value, separator: Value, for_null: Value = None) -> Value:
    members = array(value, "array_join")
    shown = [member if member is not None else for_null for member in members]
    texts = [to_text(member) for member in shown if member is not None]
    return join_texts(to_text(separator), texts, "array_join")


def sort_array(value: Value, ascending: Value = True) -> Value:  # noqa: FBT002
    return sorted(array(value, "sort_array"), key=cmp_to_key(compare_members), reverse=not ascending)


def array_sort(value: Value) -> Value:
    """Sort in ascending order, nulls last."""
    members = array(value, "array_sort")
    known = sorted((m for m in members if m is not None), key=cmp_to_key(compare))
    return [*known, *[None for member in members if member is None]]


def array_extreme(wanted: int) -> Value:
    def evaluate(value: Value) -> Value:
        best = None
        for member in array(value, "array_max"):
            if member is not None and (best is None or compare(member, best) == wanted):
                best = member
        return best

    return evaluate


def slice_of(value: Value, start: Value, length: Value) -> Value:
    members, first, count = array(value, "slice"), to_whole(start), to_whole(length)
    if first == 0 or count < 0:
        raise EvaluationError("`slice` requires a start other than 0, and a length of 0 or more")
    begin = first - 1 if first > 0 else len(members) + first
    return members[begin : begin + count] if begin >= 0 else []


def flatten(value: Value) -> Value:
    members = array(value, "flatten")
    if None in members:
        return None
    check_elements(sum(len(array(member, "flatten")) for member in members), "flatten")
    return [each for member in members for each in member]


def sequence(first: Value, last: Value, step: Value = None) -> Value:
    start, stop = to_whole(first), to_whole(last)
    by = to_whole(step) if step is not None else 1 if start <= stop else -1
    if by == 0 or (stop - start) * by < 0:
        raise EvaluationError("the step of `sequence` has the wrong sign")
    check_elements(abs(stop - start) // abs(by), "sequence")
    return list(range(start, stop + (1 if by > 0 else -1), by))


def array_repeat(value: Value, count: Value) -> Value:
    if count is None:
        return None
    check_elements(to_whole(count), "array_repeat")
    return [value] * max(0, to_whole(count))


def map_of(*values: Value) -> Value:
    if len(values) % 2:
        raise EvaluationError("`map` requires pairs of keys and values")
    return entries_to_map(list(zip(values[::2], values[1::2], strict=True)))


def entries_to_map(entries: list[tuple[Value, Value]]) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for key, value in entries:
        if key is None:
            raise EvaluationError("a map key is null")
        name = to_text(key)
        if name in made:
            raise EvaluationError("a map has a duplicate key")
        made[name] = value
    return made


def map_from_arrays(keys: Value, values: Value) -> Value:
    names, members = array(keys, "map_from_arrays"), array(values, "map_from_arrays")
    if len(names) != len(members):
        raise EvaluationError("`map_from_arrays` requires as many keys as values")
    return entries_to_map(list(zip(names, members, strict=True)))


def map_from_entries(value: Value) -> Value:
    entries = array(value, "map_from_entries")
    return entries_to_map([tuple(entry.values()) for entry in entries])


def _object(value: Value, what: str) -> dict[str, Value]:
    return value if type(value) is dict else no_fit(what, value)


def map_concat(*values: Value) -> Value:
    return entries_to_map([entry for value in values for entry in _object(value, "map_concat").items()])


FUNCTIONS: Mapping[str, Function] = {
    "size": strict(size, 1),
    "array_size": strict(size, 1),
    "cardinality": strict(size, 1),
    "element_at": strict(element_at, 2),
    "try_element_at": strict(try_element_at, 2),
    "get": strict(get, 2),
    "array_contains": strict(array_contains, 2),
    "array_position": strict(array_position, 2),
    "array_distinct": strict(array_distinct, 1),
    "array_union": strict(array_union, 2),
    "array_except": strict(array_except, 2),
    "array_intersect": strict(array_intersect, 2),
    "arrays_overlap": strict(arrays_overlap, 2),
    "array_remove": strict(array_remove, 2),
    "array_append": lenient(array_append, 2),
    "array_prepend": lenient(array_prepend, 2),
    "array_join": strict(array_join, 2, 3),
    "array_repeat": lenient(array_repeat, 2),
    "array_max": strict(array_extreme(1), 1),
    "array_min": strict(array_extreme(-1), 1),
    "array_sort": strict(array_sort, 1),
    "sort_array": strict(sort_array, 1, 2),
    "array_compact": strict(lambda value: [each for each in array(value, "compact") if each is not None], 1),
    "slice": strict(slice_of, 3),
    "flatten": strict(flatten, 1),
    "sequence": strict(sequence, 2, 3),
    "map": lenient(map_of, 0, None),
    "map_keys": strict(lambda value: list(_object(value, "map_keys")), 1),
    "map_values": strict(lambda value: list(_object(value, "map_values").values()), 1),
    "map_entries": strict(
        lambda value: [{"key": k, "value": v} for k, v in _object(value, "map_entries").items()], 1
    ),
    "map_contains_key": strict(lambda value, key: to_text(key) in _object(value, "map_contains_key"), 2),
    "map_from_arrays": strict(map_from_arrays, 2),
    "map_from_entries": strict(map_from_entries, 1),
    "map_concat": strict(map_concat, 0, None),
}
