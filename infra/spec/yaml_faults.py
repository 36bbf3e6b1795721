"""What can be wrong with a text before anything is known about topologies, as problems."""

from infra.model.problems import Location, Problem, ProblemCode
from infra.spec.wording import shorten


def broken(at: Location, summary: str, found: str | None = None) -> Problem:
    """The text is not YAML."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=summary,
        expected="YAML 1.2 or JSON",
        found=found,
        why="Nothing after this place can be understood.",
        fix="Look at this line and the one before: indentation, quotes, colons, brackets.",
        location=at,
    )


def key_is_collection(at: Location) -> Problem:
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary="A key must be text, not a mapping or a list.",
        expected="text",
        found="a mapping or a list",
        why="Nothing after this place can be understood.",
        fix="Remove the `?` or the brackets; put a template that is still to be filled in into quotes.",
        location=at,
    )


def repeated_key(key: str, first: int, at: Location) -> Problem:
    """`first` is the line of the first one."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The key `{shorten(key)}` is given twice.",
        expected="each key once",
        found=f"first on line {first}, again on line {at.line}",
        why="One of the two would silently have no effect.",
        fix="Remove one of them.",
        location=at,
    )


def tag(name: str, at: Location) -> Problem:
    name = name.replace("tag:yaml.org,2002:", "!!")
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The tag `{shorten(name)}` is refused.",
        expected="no tags",
        found=f"`{shorten(name)}`",
        why="A document holds plain values only; a tag could ask for anything to be built from them.",
        fix="Remove the tag; put a value that is to stay text into quotes.",
        location=at,
    )


def shared(sign: str, at: Location) -> Problem:
    """An anchor or an alias, `sign` with its `&` or `*`."""
    return Problem(
        code=ProblemCode.YAML_SYNTAX,
        summary=f"The {'anchor' if sign[0] == '&' else 'alias'} `{shorten(sign)}` is refused.",
        expected="no anchors and no aliases",
        found=f"`{shorten(sign)}`",
        why="A few nested aliases can stand for billions of values, and must be searched for by the reader.",
        fix=f"Write the value out wherever `*{shorten(sign[1:])}` stands.",
        location=at,
    )


def too_large(at: Location, limit: str) -> Problem:
    return Problem(
        code=ProblemCode.DOCUMENT_TOO_LARGE,
        summary="The document is larger than any topology needs.",
        expected=limit,
        found="more",
        why="Reading on could exhaust this machine.",
        fix="Split it into one document an application.",
        location=at,
    )
