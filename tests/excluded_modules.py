"""Which modules of tests a run need not import, because it excludes a mark that all of their tests have.

`make check` runs `-m "not broker and not ..."`. Each worker collects all tests, and imports take most of that
time. All tests of a quarter of the modules have one of these marks (`pytestmark`).
"""

import ast
import re
from collections.abc import Iterator

_NOT = re.compile(r"not (\w+)")
_MARKS = re.compile(r"^pytestmark = .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def excluded_marks(expression: str) -> frozenset[str]:
    """Return the marks that `-m` excludes: a and b of `not a and not b`, none of any other expression."""
    parts = [_NOT.fullmatch(part.strip()) for part in expression.split(" and ")]
    return frozenset(part[1] for part in parts if part) if all(parts) else frozenset()


def marks_of_module(source: str) -> frozenset[str]:
    """Return the marks in the `pytestmark` of a module, which all of its tests have, given its source."""
    found = _MARKS.search(source)
    if found is None:
        return frozenset()
    statement = ast.parse(found[0]).body[0]
    assert isinstance(statement, ast.Assign)
    return frozenset(_names(statement.value))


def _names(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _names(part)
        case ast.Starred(value=part) | ast.Call(func=part):
            yield from _names(part)
        case ast.Attribute(attr=name):
            yield name
