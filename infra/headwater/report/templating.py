"""The Jinja templates of this package; all values are escaped."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from headwater.report.markdown import printable


def load_template(name: str) -> Template:
    """Return a template with the function `split_code`, and the filters `px` and `printable`.

    `px` formats a coordinate, `printable` escapes control characters.
    """
    environment = Environment(
        loader=PackageLoader("headwater.report"), autoescape=True, undefined=StrictUndefined
    )
    environment.globals["split_code"] = _split_code
    environment.filters["px"] = lambda number: f"{number:.1f}".removesuffix(".0")
    environment.filters["printable"] = printable
    return environment.get_template(name)


def _split_code(text: str) -> list[tuple[bool, str]]:
    """Split a sentence at its backticks: pairs of whether the part is code, and its text."""
    return [(number % 2 == 1, part) for number, part in enumerate(re.split(r"`([^`]*)`", printable(text)))]
