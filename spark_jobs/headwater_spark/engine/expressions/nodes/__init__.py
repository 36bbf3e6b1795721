"""The emitters of source for each type of syntax tree node."""

from collections.abc import Mapping

from sqlglot import exp

from headwater_spark.engine.expressions.nodes.operators import CHOICES, LOGIC, OPERATORS, PATTERNS
from headwater_spark.engine.expressions.nodes.values import CALLS, LITERALS, NAMES
from headwater_spark.engine.expressions.source import Emitter

EMITTERS: Mapping[type, Emitter] = {
    **LITERALS,
    **NAMES,
    **OPERATORS,
    **LOGIC,
    **PATTERNS,
    **CHOICES,
    **CALLS,
}

BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or,
    exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Boolean,
)  # fmt: skip
"""Nodes whose value is true, false or null."""

OPERANDS = frozenset({"this", "expression", "expressions"})
OPTIONS: Mapping[type, frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Interval: frozenset({"unit"}),
    exp.Between: frozenset({"low", "high"}),
    exp.In: frozenset({"query", "unnest"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Cast: frozenset({"to"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
}
"""Arguments of nodes other than operands. All others are faults, as they would be ignored."""
