"""Spark SQL expressions, compiled to Python functions.

    compiled = compile_expression("value.amount > 0 and key is not null", ("key", "value"))
    is_wanted = compiled.bind(current)
    is_wanted("anna", {"amount": 3})        # True

The semantics are Spark 4's (ANSI mode, session time zone UTC): three-valued logic, null propagation,
and errors for overflow, division by zero and invalid casts. There are differences, because types are those
of values, not of columns: whole numbers have 64 bits, fractional literals are doubles, objects represent
structs and maps, and a missing field is null. `docs/expressions.md` lists operators and functions.

No text of a document is executed: sqlglot parses it, and Python source is generated from the syntax tree,
with generated names and literal constants only.
"""

from headwater_spark.engine.expressions.compiling import Compiled, compile_expression
from headwater_spark.engine.expressions.faults import EvaluationError, ExpressionError, Fault
from headwater_spark.engine.expressions.functions import function_names
from headwater_spark.engine.expressions.functions.times import milliseconds

__all__ = [
    "Compiled",
    "EvaluationError",
    "ExpressionError",
    "Fault",
    "compile_expression",
    "function_names",
    "milliseconds",
]
