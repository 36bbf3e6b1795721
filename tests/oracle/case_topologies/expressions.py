"""Translate the functions of `topology.txt`, which have Python syntax, to Spark SQL.

`+` puts texts together or adds numbers: which one follows from its operands, and for bare parameters from
what the stream holds there. As in Java a null within a text is "null".
"""

import ast
import re
from collections.abc import Mapping
from typing import Literal

import attrs

Kind = Literal["string", "number", "boolean"]

_COMPARISONS: dict[type, str] = {
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type, str] = {ast.Sub: "-", ast.Mult: "*", ast.Mod: "%"}
_CALLS: dict[str, tuple[str, Kind]] = {
    "before": ("substring_index({0}, ':', 1)", "string"),
    "after": ("bigint(substring({0}, instr({0}, ':') + 1))", "number"),
    "str": ("string({0})", "string"),
    "upper": ("upper({0})", "string"),
    "lower": ("lower({0})", "string"),
    "len": ("length({0})", "number"),
    "int": ("bigint({0})", "number"),
}
NUMBERS = {"long", "integer", "double"}


@attrs.frozen
class Function:
    """`(a, b) -> body`."""

    parameters: tuple[str, ...]
    body: str


@attrs.frozen
class Bound:
    """A parameter's value: SQL, the kind of its content, and whether texts show null."""

    sql: str
    kind: Kind = "string"
    nullable: bool = False


@attrs.frozen
class Sql:
    text: str
    kind: Kind

    @property
    def quoted(self) -> str:
        return self.text if re.fullmatch(r"[\w.]+|'[^']*'|\w+\(.*\)", self.text) else f"({self.text})"


def sql_of(function: Function, bound: tuple[Bound, ...]) -> tuple[Sql, ...]:
    """The results, more than one for a tuple; `bound` by position."""
    if len(function.parameters) == 1 and len(bound) > 1:
        bound = (bound[1],)  # a mapper of values alone
    names = dict(zip(function.parameters, bound, strict=False))
    tree = ast.parse(re.sub(r"\s+as strings$", "", function.body.strip()), mode="eval").body
    if isinstance(tree, ast.Tuple):
        return tuple(_sql(each, names) for each in tree.elts)
    return (_sql(tree, names),)


def literal(text: str) -> Sql:
    return _sql(ast.parse(text, mode="eval").body, {})


def _sql(node: ast.expr, names: Mapping[str, Bound]) -> Sql:
    match node:
        case ast.Constant(value=str(text)):
            return Sql("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'", "string")
        case ast.Constant(value=int(number)):
            return Sql(str(number), "number")
        case ast.Name(id=name):
            return Sql(names[name].sql, names[name].kind)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Sql(f"-{_sql(operand, names).quoted}", "number")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Sql(f"not {_sql(operand, names).quoted}", "boolean")
        case ast.Attribute(value=value, attr="rest"):
            text = _sql(value, names).text
            return Sql(f"substring({text}, instr({text}, ':') + 1)", "string")
        case ast.BinOp(op=ast.Add()):
            return _sum(node, names)
        case ast.BinOp(left=left, op=operator, right=right):
            sides = _sql(left, names).quoted, _sql(right, names).quoted
            return Sql(f"{sides[0]} {_ARITHMETIC[type(operator)]} {sides[1]}", "number")
        case ast.Compare(left=left, ops=[ast.In()], comparators=[within]):
            return Sql(f"contains({_sql(within, names).text}, {_sql(left, names).text})", "boolean")
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            sides = _sql(left, names).quoted, _sql(right, names).quoted
            return Sql(f"{sides[0]} {_COMPARISONS[type(operator)]} {sides[1]}", "boolean")
        case ast.BoolOp(op=operator, values=values):
            word = " and " if isinstance(operator, ast.And) else " or "
            return Sql(word.join(_sql(value, names).quoted for value in values), "boolean")
        case ast.List(elts=elements):
            return Sql(f"array({', '.join(_element(each, names) for each in elements)})", "string")
        case ast.Call():
            return _call(node, names)
    raise ValueError(f"unknown in topology.txt: {ast.unparse(node)}")


def _sum(node: ast.BinOp, names: Mapping[str, Bound]) -> Sql:
    sides = [_sql(side, names) for side in (node.left, node.right)]
    if all(side.kind == "number" for side in sides):
        return Sql(f"{sides[0].quoted} + {sides[1].quoted}", "number")
    shown = [_shown(side, each, names) for side, each in zip((node.left, node.right), sides, strict=True)]
    return Sql(" || ".join(shown), "string")


def _shown(node: ast.expr, sql: Sql, names: Mapping[str, Bound]) -> str:
    if isinstance(node, ast.Name) and names[node.id].nullable:
        return f"coalesce({sql.text}, 'null')"
    return sql.text if isinstance(node, ast.BinOp) and sql.kind == "string" else sql.quoted


def _element(node: ast.expr, names: Mapping[str, Bound]) -> str:
    """Of the array of `flatMap` (pairs) or `flatMapValues`."""
    if isinstance(node, ast.Tuple):
        key, value = (_sql(each, names).text for each in node.elts)
        return f"struct({key} as key, {value} as value)"
    return _sql(node, names).text


def _call(node: ast.Call, names: Mapping[str, Bound]) -> Sql:
    arguments = [_sql(argument, names) for argument in node.args]
    match node.func:
        case ast.Name(id="max" | "min" as name):
            word = "greatest" if name == "max" else "least"
            return Sql(f"{word}({', '.join(each.text for each in arguments)})", arguments[0].kind)
        case ast.Name(id=name):
            template, kind = _CALLS[name]
            return Sql(template.format(*(each.text for each in arguments)), kind)
        case ast.Attribute(value=value, attr="startswith" | "endswith" as name):
            return Sql(f"{name}({_sql(value, names).text}, {arguments[0].text})", "boolean")
        case ast.Attribute(value=value, attr="split"):
            return Sql(f"split({_sql(value, names).text}, {arguments[0].text})", "string")
    raise ValueError(f"unknown in topology.txt: {ast.unparse(node)}")
