"""Problems on standard error."""

from collections.abc import Iterable

from rich.console import Console

from headwater.model.problems import Problem
from headwater.report.problem_text import WIDTH, problems_rich

_MOST = 500
"""Problems that are printed. More are of little use, and take a minute if a text has 20,000 of them."""
_NARROWEST = 40
"""Columns; a narrower terminal breaks the lines itself."""


def print_problems(problems: Iterable[Problem]) -> None:
    """Print all problems to standard error, in colors on a terminal."""
    found = tuple(problems)
    if found:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        width = max(console.width, _NARROWEST) if console.is_terminal else WIDTH
        console.print(problems_rich(found, min(width, WIDTH), _MOST))
