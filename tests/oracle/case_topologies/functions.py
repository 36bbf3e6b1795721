"""Translate the functions of a call in `topology.txt` to expressions of documents."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.oracle.case_topologies.arguments import Arguments
from tests.oracle.case_topologies.expressions import NUMBERS, Bound, Function, Kind, literal, sql_of

Options = dict[str, Any]
_ADDER = re.compile(r"adder\(([\w.-]+),\s*\+?(-?\d+)\)")


def expressions(operator: str, arguments: Arguments, holds: Kind, other: Kind = "string") -> Options:
    """The expressions of a call on a value that holds `holds`; `other` is what a join's partner holds."""
    functions = list(arguments.functions)
    if found := next(filter(None, map(_ADDER.search, arguments.words)), None):
        return {"class": adder(found[1], int(found[2]))}
    if operator in {"join", "leftJoin", "outerJoin"}:
        return _join(arguments, functions, (holds, other), nullable=operator != "join")
    if operator == "aggregate":
        return _aggregate(arguments, functions, holds)
    if operator == "reduce":
        return _reduce(functions, holds)
    build = _RECORD.get(operator)
    if build is None or not functions:
        return {}
    return build([each.text for each in sql_of(functions[0], _record(holds))])


def predicate(arguments: Arguments, holds: Kind) -> Options:
    """Of a branch."""
    functions = arguments.functions
    return {"where": sql_of(functions[0], _record(holds))[0].text} if functions else {}


def cogrouped(arguments: Arguments, holds: Kind) -> Options:
    return {"add": _fold(arguments.functions[0], holds, "string")} if arguments.functions else {}


def result_holds(operator: str, arguments: Arguments, holds: Kind) -> Kind:
    """Return the kind of the result's values."""
    if arguments.serdes is not None:
        return "number" if arguments.serdes[1] in NUMBERS else "string"
    if operator == "count" or any(map(_ADDER.search, arguments.words)):
        return "number"
    if operator == "aggregate":
        return _init(arguments)[1]
    if operator in {"map", "mapValues"} and arguments.functions:
        return sql_of(arguments.functions[0], _record(holds))[-1].kind
    return "string" if operator in {"stream", "table", "globalTable", "flatMap", "flatMapValues"} else holds


def adder(store: str, step: int) -> str:
    sign = "minus_" if step < 0 else ""
    return f"tests.oracle.processors:Adder_{sign}{abs(step)}_of_{store.replace('-', '_')}"


def _record(holds: Kind) -> tuple[Bound, ...]:
    return (Bound("key"), Bound("value", holds))


def _join(
    arguments: Arguments, functions: list[Function], kinds: tuple[Kind, Kind], *, nullable: bool
) -> Options:
    options: Options = {}
    holds, other = kinds
    if "foreignKey" in arguments.words and functions:
        extractor = functions.pop(0)
        options["foreignKey"] = sql_of(extractor, (Bound("key"), Bound("value", holds)))[0].text
    elif "key" in arguments.words and functions:
        options["key"] = sql_of(functions.pop(0), _record(holds))[0].text
    if functions:
        sides = (Bound("left", holds, nullable), Bound("right", other, nullable))
        options["value"] = sql_of(functions[0], sides)[0].text
    return options


def _init(arguments: Arguments) -> tuple[str, Kind]:
    made = literal(arguments.options.get("init", '""'))
    return made.text, made.kind


def _aggregate(arguments: Arguments, functions: list[Function], holds: Kind) -> Options:
    init, kind = _init(arguments)
    options: Options = {"init": init}
    if functions:
        options["add"] = _fold(functions.pop(0), holds, kind)
    if functions and len(functions[0].parameters) == 3 and "merge" in arguments.words:
        sides = (Bound("key"), Bound("left", kind), Bound("right", kind))
        options["merge"] = sql_of(functions[0], sides)[0].text
    elif functions:
        options["remove"] = _fold(functions[0], holds, kind)
    return options


def _fold(function: Function, holds: Kind, kind: Kind) -> str:
    return sql_of(function, (Bound("key"), Bound("value", holds), Bound("total", kind)))[0].text


def _reduce(functions: list[Function], holds: Kind) -> Options:
    sides = (Bound("total", holds), Bound("value", holds))
    made = [sql_of(function, sides)[0].text for function in functions]
    return dict(zip(("add", "remove"), made, strict=False))


_RECORD: Mapping[str, Callable[[list[str]], Options]] = {
    "filter": lambda made: {"where": made[0]},
    "filterNot": lambda made: {"where": made[0]},
    "map": lambda made: dict(zip(("key", "value"), made, strict=True)),
    "mapValues": lambda made: {"value": made[0]},
    "flatMap": lambda made: {"each": made[0]},
    "flatMapValues": lambda made: {"each": made[0]},
    "selectKey": lambda made: {"key": made[0]},
    "groupBy": lambda made: dict(zip(("key", "value"), made, strict=False)),
    "toStream": lambda made: {"selectKey": made[0]},
}
