"""The templates of this package: everything that is put into them is escaped."""

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from infra.report.printable import printable


def template(name: str) -> Template:
    """Return a template whose filters are `px`, a coordinate, and `printable`, a text from outside."""
    environment = Environment(
        loader=PackageLoader("infra.report"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["px"] = lambda number: f"{number:.1f}".removesuffix(".0")
    environment.filters["printable"] = printable
    return environment.get_template(name)
