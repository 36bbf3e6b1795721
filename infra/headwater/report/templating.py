"""The Jinja templates of this package; all values are escaped."""

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from headwater.report.escaping import printable


def template(name: str) -> Template:
    """Return a template with the filters `px` (format a coordinate) and `printable` (escape controls)."""
    environment = Environment(
        loader=PackageLoader("headwater.report"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["px"] = lambda number: f"{number:.1f}".removesuffix(".0")
    environment.filters["printable"] = printable
    return environment.get_template(name)
