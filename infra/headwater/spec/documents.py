"""Load topology documents from files or text, with all problems."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import attrs

from headwater.model.problems import Location, Problem, ProblemCode, errors
from headwater.model.topology import TopologyDocument
from headwater.spec.application_ids import application_id, id_problems
from headwater.spec.build_document import build_document
from headwater.spec.config_keys import config_problems
from headwater.spec.exported_application import exported_application_problems, with_exported_application
from headwater.spec.files import find, read
from headwater.spec.handles import handle_problems
from headwater.spec.locations import NO_POSITION, RawDocument
from headwater.spec.schema_problems import schema_problems
from headwater.spec.topic_config_problems import topic_config_problems
from headwater.spec.versions import version_problems
from headwater.spec.yaml_reader import read_yaml


@attrs.frozen
class Documents:
    """`documents` are those without errors, in reading order; `problems` are those of all documents."""

    documents: tuple[TopologyDocument, ...] = ()
    problems: tuple[Problem, ...] = ()


_CHECKS = (handle_problems, config_problems, topic_config_problems, version_problems)


def load_documents(paths: Sequence[Path]) -> Documents:
    """Load files, folders (with all *.yaml, *.yml and *.json files below) and glob patterns.

    Invalid input raises nothing: it is in `problems`.
    """
    files, problems = find(paths)
    raws: list[RawDocument] = []
    found = list(problems)
    for file in files:
        text = read(file)
        if isinstance(text, Problem):
            found.append(text)
        else:
            documents, faults = _raw_documents(text, str(file))
            raws += documents
            found += faults
    return _checked(raws, found)


def load_text(text: str, file: str) -> Documents:
    """Load YAML or JSON text. `file` is the name in locations; `describe.file` is relative to its folder."""
    raws, problems = _raw_documents(text, file)
    return _checked(raws, problems)


def parse_document(data: Mapping[str, object], file: str = "") -> Documents:
    """Check a document that is in memory, and build its typed value.

    Raises:
        TypeError, ValueError: `data` contains values that JSON does not have.
    """
    return _checked([RawDocument(file, json.loads(json.dumps(data, allow_nan=False)), NO_POSITION)], ())


def _raw_documents(text: str, file: str) -> tuple[tuple[RawDocument, ...], tuple[Problem, ...]]:
    raws, problems = read_yaml(text, file)
    if not raws and not problems:
        return (), (_empty(file),)
    return raws, problems


def _checked(raws: Sequence[RawDocument], problems: Iterable[Problem]) -> Documents:
    reading = tuple(problems)
    broken = {problem.location.file for problem in reading if problem.location is not None}
    documents: list[TopologyDocument] = []
    found: list[Problem] = []
    for read_raw in raws:
        raw = with_exported_application(read_raw)
        checks = (
            schema_problems(read_raw),
            exported_application_problems(read_raw),
            *(check(raw) for check in _CHECKS),
        )
        faults = tuple(_named(raw, chain.from_iterable(checks)))
        found += faults
        if not errors(faults) and raw.file not in broken:
            document, faults = build_document(raw)
            found += _named(raw, faults)
            if document is not None and not errors(faults):
                documents.append(document)
    return Documents(tuple(documents), _ordered((*reading, *found, *id_problems(raws))))


def _named(raw: RawDocument, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems with the application id of the document, if it has one."""
    application = application_id(raw)
    return (problem.located(application=application) for problem in problems)


def _ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in order of files, lines and columns."""
    files: dict[str, int] = {}
    placed = [(problem.location or Location(""), problem) for problem in problems]
    for location, _ in placed:
        files.setdefault(location.file, len(files))
    placed.sort(key=lambda pair: (files[pair[0].file], pair[0].line, pair[0].column))
    return tuple(problem for _, problem in placed)


def _empty(file: str) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary="The file contains no document.",
        expected="a topology document",
        found="only whitespace and comments",
        why="An application whose document is empty would look as if it had been removed.",
        fix="Declare the application, or remove the file.",
        location=Location(file),
    )
