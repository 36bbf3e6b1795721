"""Limits of expressions and of their results: far above real ones, and low enough for hostile ones.

They bound what one expression of a document can take from the process that evaluates it.
"""

from headwater_spark.engine.expressions.faults import EvaluationError

LONGEST_TEXT = 20_000
"""Characters of an expression."""
MOST_NODES = 5_000
DEEPEST = 60
MOST_STEPS = 100
"""Steps of the parser for each token. It tries types first: `struct(struct(…` takes exponential time."""
MOST_DIGITS = 400
"""Digits of a number; a double has at most 309 before the point."""
LONGEST_RESULT = 10_000_000
"""Characters of a string that a function returns."""
MOST_ELEMENTS = 1_000_000
"""Elements of an array that a function returns."""


def check_characters(number: int, function: str) -> None:
    """Raise EvaluationError if `function` would return a string of more than `LONGEST_RESULT` characters."""
    if number > LONGEST_RESULT:
        raise EvaluationError(f"the result of `{function}` exceeds {LONGEST_RESULT} characters")


def check_elements(number: int, function: str) -> None:
    """Raise EvaluationError if `function` would return an array of more than `MOST_ELEMENTS` elements."""
    if number > MOST_ELEMENTS:
        raise EvaluationError(f"the result of `{function}` exceeds {MOST_ELEMENTS} elements")
