"""YAML or JSON text → the documents in it, and what is wrong with its YAML."""

import re

import yaml

from infra.model.problems import Location, Problem
from infra.spec import yaml_faults as faults
from infra.spec.places import RawDocument
from infra.spec.yaml_tree import ReadingStopped, TreeBuilder

_Loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader

_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def read_yaml(text: str, file: str) -> tuple[tuple[RawDocument, ...], tuple[Problem, ...]]:
    """All documents of `text`, separated by `---`, empty ones left out. With YAML errors there are none."""
    tree = TreeBuilder(file)
    try:
        tree.read(yaml.parse(_joined_surrogates(text) if file.endswith(".json") else text, Loader=_Loader))
    except ReadingStopped:
        return (), tuple(tree.problems)
    except yaml.YAMLError as error:
        return (), (*tree.problems, _broken(error, text, file))
    except UnicodeEncodeError as error:
        at = _location(text, error.start, file)
        return (), (
            faults.broken(at, "The text holds half a character.", f"`{ascii(text[error.start])[1:-1]}`"),
        )
    return tuple(raw for raw in tree.documents if raw.data is not None or raw.place.refused), tuple(
        tree.problems
    )


def _broken(error: yaml.YAMLError, text: str, file: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        character = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
        at = _location(text, character.start(), file) if character else Location(file)
        return faults.broken(
            at,
            "The text holds a control character.",
            f"`{ascii(character.group())[1:-1]}`" if character else None,
        )
    mark = getattr(error, "problem_mark", None)
    at = Location(file, mark.line + 1, mark.column + 1) if mark is not None else Location(file)
    problem, context = getattr(error, "problem", None), getattr(error, "context", None)
    return faults.broken(
        at, f"The YAML is broken: {problem or error}" + (f" ({context})." if context else ".")
    )


def _location(text: str, index: int, file: str) -> Location:
    before = text[:index]
    return Location(file, before.count("\n") + 1, index - before.rfind("\n"))


def _joined_surrogates(text: str) -> str:
    """JSON escapes a character beyond U+FFFF as two halves, YAML in one piece."""

    def joined(match: re.Match[str]) -> str:
        high, low = int(match[2], 16), int(match[3], 16)
        return f"{match[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"

    return _SURROGATES.sub(joined, text)
