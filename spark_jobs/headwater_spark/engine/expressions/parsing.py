"""Parse an expression with sqlglot, within limits.

sqlglot translates functions between dialects, and does not keep the original function. The dialect here has
no functions: each call remains a name with arguments, with the meaning that it has in Spark.
"""

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headwater_spark.engine.expressions.faults import (
    DEEPEST,
    LONGEST_TEXT,
    MOST_DIGITS,
    MOST_NODES,
    MOST_STEPS,
    ExpressionError,
    Fault,
)
from headwater_spark.engine.records import Value


class _TooManyStepsError(Exception):
    pass


class _Expressions(Spark):
    class Parser(SparkParser):
        FUNCTIONS: ClassVar[Value] = {"ARRAY": exp.Array.from_arg_list}
        FUNCTION_PARSERS: ClassVar[Value] = {
            "CAST": lambda self: self._parse_cast(strict=True),
            "TRY_CAST": lambda self: self._parse_cast(strict=False, safe=True),
        }
        NO_PAREN_FUNCTIONS: ClassVar[Value] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Value] = {
            word: SparkParser.NO_PAREN_FUNCTION_PARSERS[word] for word in ("CASE", "IF")
        }
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > MOST_STEPS * (10 + self._tokens_size):
                raise _TooManyStepsError
            super()._advance(times)


_DIALECT = _Expressions()


def parse(text: str) -> exp.Expr:
    """Return the syntax tree of one expression.

    Raises:
        ExpressionError: The text is not an expression, or exceeds the limits.
    """
    if len(text) > LONGEST_TEXT:
        raise _too_much(f"{len(text)} characters", f"at most {LONGEST_TEXT} characters")
    try:
        trees = [tree for tree in _DIALECT.parse(text) if tree is not None]
    except ParseError as error:
        raise ExpressionError(_faults(error)) from None
    except (RecursionError, _TooManyStepsError):
        raise _too_much("nested too deeply to be read", f"at most {DEEPEST} levels") from None
    except SqlglotError:
        raise ExpressionError([Fault("it is not SQL", _shown(text))]) from None
    if len(trees) != 1:
        summary = "it is empty" if not trees else "it is more than one expression"
        raise ExpressionError([Fault(summary, _shown(text), "one expression", "Write one expression.")])
    _check_size(trees[0])
    return trees[0]


def position(node: exp.Expr) -> tuple[int, int]:
    """Return line and column of the start of a node, as far as sqlglot knows them."""
    for each in node.walk():
        if "line" in each.meta:
            return each.meta["line"], max(1, each.meta["col"] - len(each.name) + 1)
    return 1, 1


def _check_size(tree: exp.Expr) -> None:
    pending = [(tree, 1)]
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > DEEPEST:
            raise _too_much(f"more than {DEEPEST} levels", f"at most {DEEPEST} levels")
        if isinstance(node, exp.Literal) and node.is_number and len(node.name) > MOST_DIGITS:
            raise _too_much(f"a number of {len(node.name)} digits", f"at most {MOST_DIGITS} digits")
        if nodes > MOST_NODES:
            raise _too_much(f"more than {MOST_NODES} parts", f"at most {MOST_NODES} parts")
        pending.extend((child, depth + 1) for child in node.iter_expressions())


def _faults(error: ParseError) -> list[Fault]:
    return [
        Fault(
            f"it is not SQL ({each['description']})",
            str(each["highlight"]) or "the end",
            line=each["line"] or 1,
            column=each["col"] or 1,
            fix="Correct it.",
        )
        for each in error.errors
    ] or [Fault("it is not SQL", "the text", fix="Correct it.")]


def _too_much(found: str, expected: str) -> ExpressionError:
    return ExpressionError(
        [Fault("it is too large", found, expected, "Split it over several operators, or use a processor.")]
    )


def shortened(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _shown(text: str) -> str:
    return shortened(text.strip())
