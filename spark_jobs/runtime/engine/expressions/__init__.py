"""PURE. Spark SQL expressions, compiled to Python functions.

    compiled = compile_expression("value.amount > 0 and key is not null", ("key", "value"))
    is_wanted = compiled.bind(current)
    is_wanted("anna", {"amount": 3})        # True

The semantics are Spark 4's (ANSI mode on, session time zone UTC): three-valued logic, null propagation, and
errors for overflow, division by zero and bad casts. What differs, because types are those of the values at
hand and not of columns: whole numbers are 64 bits wide, fractional literals are doubles, structs and maps are
both objects, a field that an object lacks is null. `docs/expressions.md` lists what there is.

Nothing that a document says is executed: text is parsed by sqlglot, and Python source is generated from the
tree alone, with names and constants of our own making.
"""

from spark_jobs.runtime.engine.expressions.compiling import Compiled, compile_expression
from spark_jobs.runtime.engine.expressions.faults import EvaluationError, ExpressionError, Fault
from spark_jobs.runtime.engine.expressions.functions import function_names
from spark_jobs.runtime.engine.expressions.functions.times import milliseconds

__all__ = [
    "Compiled",
    "EvaluationError",
    "ExpressionError",
    "Fault",
    "compile_expression",
    "function_names",
    "milliseconds",
]
