"""Functions with names, lambdas, or arguments that are not always evaluated."""

from collections.abc import Callable, Mapping
from functools import cmp_to_key

from sqlglot import exp

from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.arrays import array, array_sort, entries_to_map
from headwater_spark.engine.expressions.operations import equal, no_fit, truth
from headwater_spark.engine.expressions.source import CodeGenerator, constant, null_test
from headwater_spark.engine.records import Value, Windowed

Form = Callable[[CodeGenerator, exp.Anonymous], str]


# objects


def _struct(generator: CodeGenerator, node: exp.Anonymous) -> str:
    """`struct`: a field is named by `as`, by the last part of a path, or `col1`, …; `x.*` is all fields."""
    parts: list[str] = []
    for position, each in enumerate(node.expressions, start=1):
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            spread = generator.value(_without_star(each))
            parts.append(f"**{generator.source.object(fields_of, 'g')}({spread})")
        elif isinstance(each, exp.Dot) and isinstance(each.expression, exp.Star):
            spread = generator.value(each.this)
            parts.append(f"**{generator.source.object(fields_of, 'g')}({spread})")
        else:
            of = each.this if isinstance(each, exp.Alias) else each
            parts.append(f"{constant(_name(each, position))}: {generator.value(of)}")
    return generator.source.assign("{" + ", ".join(parts) + "}")


def _without_star(node: exp.Column) -> exp.Expr:
    """`a.b.*` → `a.b`."""
    names = [part.name for part in node.parts[:-1]]
    made: exp.Expr = exp.column(exp.to_identifier(names[0]))
    for name in names[1:]:
        made = exp.Dot(this=made, expression=exp.to_identifier(name))
    return made


def fields_of(value: Value) -> Mapping[str, Value]:
    """Return the fields of an object; null has none."""
    if value is None:
        return {}
    if isinstance(value, Windowed):
        return value._asdict()
    result: Mapping[str, Value] = value if isinstance(value, dict) else no_fit(".*", value)
    return result


def _name(node: exp.Expr, position: int) -> str:
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column | exp.Identifier):
        return str(node.name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return f"col{position}"


def _named_struct(generator: CodeGenerator, node: exp.Anonymous) -> str:
    arguments = node.expressions
    names = arguments[::2]
    if len(arguments) % 2 or not all(isinstance(each, exp.Literal) and each.is_string for each in names):
        return generator.fault(
            node, "`named_struct` has unsupported arguments", "'name', value, 'name', value, …"
        )
    pairs = zip(names, arguments[1::2], strict=True)
    parts = [f"{constant(str(name.this))}: {generator.value(value)}" for name, value in pairs]
    return generator.source.assign("{" + ", ".join(parts) + "}")


# choices


def _coalesce(generator: CodeGenerator, node: exp.Anonymous) -> str:
    if not node.expressions:
        return generator.fault(node, "`coalesce` has no arguments", "one value or more")
    result = generator.source.assign(generator.value(node.expressions[0]))
    _otherwise(generator, result, node.expressions[1:])
    return result


def _otherwise(generator: CodeGenerator, result: str, rest: list[exp.Expr]) -> None:
    if rest:
        with generator.source.block(f"if {result} is None:"):
            generator.source.line(f"{result} = {generator.value(rest[0])}")
            _otherwise(generator, result, rest[1:])


def _arguments(*counts: int) -> Callable[[Form], Form]:
    """Check that a form has one of these numbers of arguments."""
    allowed = " or ".join(map(str, counts))

    def wrap(form: Form) -> Form:
        def checked(generator: CodeGenerator, node: exp.Anonymous) -> str:
            if len(node.expressions) not in counts:
                found = f"`{node.this}` is called with {len(node.expressions)} argument(s)"
                return generator.fault(node, found, f"{allowed} argument(s)")
            return form(generator, node)

        return checked

    return wrap


_two_arguments = _arguments(2)


def _nullif(generator: CodeGenerator, node: exp.Anonymous) -> str:
    left, right = map(generator.value, node.expressions)
    same = generator.call(equal, left, right)
    return generator.source.assign(f"None if {same} is True else {left}")


@_arguments(3)
def _nvl2(generator: CodeGenerator, node: exp.Anonymous) -> str:
    tested = generator.value(node.expressions[0])
    result = generator.source.assign("None")
    with generator.source.block(f"if {null_test(tested, negated=True)}:"):
        generator.source.line(f"{result} = {generator.value(node.expressions[1])}")
    with generator.source.block("else:"):
        generator.source.line(f"{result} = {generator.value(node.expressions[2])}")
    return result


def _null_test(*, negated: bool) -> Form:
    @_arguments(1)
    def emit(generator: CodeGenerator, node: exp.Anonymous) -> str:
        return generator.source.assign(null_test(generator.value(node.expressions[0]), negated=negated))

    return emit


# lambdas


def transform_members(members: Value, function: Callable[..., Value]) -> Value:
    return [function(member) for member in array(members, "transform")]


def transform_indexed(members: Value, function: Callable[..., Value]) -> Value:
    return [function(member, index) for index, member in enumerate(array(members, "transform"))]


def filter_members(members: Value, function: Callable[..., Value]) -> Value:
    return [member for member in array(members, "filter") if truth(function(member)) is True]


def filter_indexed(members: Value, function: Callable[..., Value]) -> Value:
    kept = enumerate(array(members, "filter"))
    return [member for index, member in kept if truth(function(member, index)) is True]


def any_member(members: Value, function: Callable[..., Value]) -> Value:
    """Return null if no predicate is true and one is null."""
    found = False
    for member in array(members, "exists"):
        answer = truth(function(member))
        if answer is True:
            return True
        found = found or answer is None
    return None if found else False


def all_members(members: Value, function: Callable[..., Value]) -> Value:
    unknown = False
    for member in array(members, "forall"):
        answer = truth(function(member))
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True


def fold_members(members: Value, start: Value, merge: Callable[..., Value]) -> Value:
    total = start
    for member in array(members, "aggregate"):
        total = merge(total, member)
    return total


def fold_and_finish(
    members: Value, start: Value, merge: Callable[..., Value], finish: Callable[..., Value]
) -> Value:
    return finish(fold_members(members, start, merge))


def zip_members(left: Value, right: Value, function: Callable[..., Value]) -> Value:
    one, other = array(left, "zip_with"), array(right, "zip_with")
    longest = max(len(one), len(other))
    padded = [(*each, *[None] * (longest - len(each))) for each in (one, other)]
    return [function(first, second) for first, second in zip(*padded, strict=True)]


def sort_members(members: Value, function: Callable[..., Value]) -> Value:
    def order(left: Value, right: Value) -> int:
        result = function(left, right)
        if type(result) is not int:
            raise EvaluationError("the result of the `array_sort` lambda is not a whole number")
        return result

    return sorted(array(members, "array_sort"), key=cmp_to_key(order))


def map_filtered(entries: Value, function: Callable[..., Value]) -> Value:
    return {key: value for key, value in fields_of(entries).items() if truth(function(key, value)) is True}


def map_values_changed(entries: Value, function: Callable[..., Value]) -> Value:
    return {key: function(key, value) for key, value in fields_of(entries).items()}


def map_keys_changed(entries: Value, function: Callable[..., Value]) -> Value:
    return entries_to_map([(function(key, value), value) for key, value in fields_of(entries).items()])


def _higher_order(by_count: Mapping[int, Callable[..., Value]]) -> Form:
    """Return the form `name(array, lambda)`; the function depends on the lambda's number of parameters."""

    def emit(generator: CodeGenerator, node: exp.Anonymous) -> str:
        members = generator.value(node.expressions[0])
        function = generator.function_of(node.expressions[1], by_count.keys())
        chosen = by_count.get(len(node.expressions[1].expressions))
        if chosen is None:
            return "None"
        return _nullable(generator, chosen, [members], function)

    return _two_arguments(emit)


def _nullable(
    generator: CodeGenerator, function: Callable[..., Value], tested: list[str], *others: str
) -> str:
    """Call the function, or return null if one of `tested` is null."""
    called = generator.source.object(function, "g")
    test = " or ".join(map(null_test, tested))
    return generator.source.assign(f"None if {test} else {called}({', '.join((*tested, *others))})")


@_arguments(3, 4)
def _aggregate(generator: CodeGenerator, node: exp.Anonymous) -> str:
    first, second, merging, *finishing = node.expressions
    members, start = generator.value(first), generator.value(second)
    merge = generator.function_of(merging, {2})
    if not finishing:
        return _nullable(generator, fold_members, [members], start, merge)
    finish = generator.function_of(finishing[0], {1})
    return _nullable(generator, fold_and_finish, [members], start, merge, finish)


@_arguments(3)
def _zip_with(generator: CodeGenerator, node: exp.Anonymous) -> str:
    members = [generator.value(each) for each in node.expressions[:2]]
    function = generator.function_of(node.expressions[2], {2})
    return _nullable(generator, zip_members, members, function)


def _array_sort(generator: CodeGenerator, node: exp.Anonymous) -> str:

    if len(node.expressions) == 1:
        return generator.call(array_sort, generator.value(node.expressions[0]), strict=True)
    return _sorted_by(generator, node)


_sorted_by = _higher_order({2: sort_members})

FORMS: Mapping[str, Form] = {
    "struct": _struct,
    "named_struct": _named_struct,
    "coalesce": _coalesce,
    "nvl": _two_arguments(_coalesce),
    "ifnull": _two_arguments(_coalesce),
    "nvl2": _nvl2,
    "nullif": _two_arguments(_nullif),
    "isnull": _null_test(negated=False),
    "isnotnull": _null_test(negated=True),
    "transform": _higher_order({1: transform_members, 2: transform_indexed}),
    "filter": _higher_order({1: filter_members, 2: filter_indexed}),
    "exists": _higher_order({1: any_member}),
    "forall": _higher_order({1: all_members}),
    "aggregate": _aggregate,
    "reduce": _aggregate,
    "zip_with": _zip_with,
    "array_sort": _array_sort,
    "map_filter": _higher_order({2: map_filtered}),
    "transform_values": _higher_order({2: map_values_changed}),
    "transform_keys": _higher_order({2: map_keys_changed}),
}
