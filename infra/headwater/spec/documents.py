"""Load topology documents from files or text, with all problems."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import attrs

from headwater.model.problems import Location, Problem, ProblemCode, Severity, errors, shorten_text
from headwater.model.topology import TopologyDocument, name_beginnings
from headwater.model.versions import DEFAULT_VERSION
from headwater.spec.build_document import build_document
from headwater.spec.document_checks import config_problems, handle_problems
from headwater.spec.exported import exported_application_problems, with_exported_application
from headwater.spec.files import file_of_another_kind, find_files, read_regular_file
from headwater.spec.locations import NO_POSITION, RawDocument
from headwater.spec.schema_problems import schema_problems
from headwater.spec.topic_configs import topic_config_problems
from headwater.spec.versions import version_problems
from headwater.spec.yaml_text import read_yaml

_LONGEST_ID = 249


@attrs.frozen
class Documents:
    """What was loaded: the documents without errors in reading order, and the problems of all documents."""

    documents: tuple[TopologyDocument, ...] = ()
    problems: tuple[Problem, ...] = ()


def load_documents(paths: Sequence[Path]) -> Documents:
    """Load files, folders (with all *.yaml, *.yml and *.json files below) and glob patterns.

    Invalid input raises nothing: it is in `problems`.
    """
    files, problems = find_files(paths)
    raws: list[RawDocument] = []
    found = list(problems)
    for file in files:
        text = read_regular_file(file)
        if isinstance(text, Problem):
            found.append(text)
        else:
            documents, faults = _raw_documents(text, str(file))
            other = file_of_another_kind(file)
            if other is not None and all(each.section("application") is None for each in documents):
                found.append(other)
                continue
            raws += documents
            found += faults
    return _check_documents(raws, found)


def load_text(text: str, file: str) -> Documents:
    """Load YAML or JSON text. `file` is the name in locations; `describe.file` is relative to its folder."""
    raws, problems = _raw_documents(text, file)
    return _check_documents(raws, problems)


def parse_document(data: Mapping[str, object], file: str = "") -> Documents:
    """Check a document that is in memory, and build its typed value.

    Raises:
        TypeError, ValueError: `data` contains values that JSON does not have.
    """
    return _check_documents(
        [RawDocument(file, json.loads(json.dumps(data, allow_nan=False)), NO_POSITION)], ()
    )


def _id_problems(documents: Sequence[RawDocument]) -> tuple[Problem, ...]:
    """Return problems for documents with the same id, and for ids that begin with another id and a hyphen."""
    first: dict[str, RawDocument] = {}
    problems: list[Problem] = []
    for raw in documents:
        name = application_id(raw)
        if name is None:
            continue
        if name in first:
            problems.append(_duplicate_id(name, first[name], raw))
        else:
            first[name] = raw
    for name, raw in first.items():
        problems.extend(
            _overlapping_ids(shorter, first[shorter], name, raw)
            for shorter in name_beginnings(name)
            if shorter in first
        )
    return tuple(problems)


def application_id(raw: RawDocument) -> str | None:
    """Return the application id of a document that may have other errors; None if it is not valid."""
    application = raw.section("application")
    found = application.get("id") if isinstance(application, dict) else None
    return found if isinstance(found, str) and 0 < len(found) <= _LONGEST_ID else None


def _duplicate_id(name: str, first: RawDocument, second: RawDocument) -> Problem:
    return Problem(
        code=ProblemCode.DUPLICATE_APPLICATION,
        summary=f"Two documents declare the application `{name}`.",
        application=name,
        expected="one document per application",
        found=f"{_location_text(first)}{_version_of(first, second)} and "
        f"{_location_text(second)}{_version_of(second, first)}",
        why="Both would manage the same internal topics, with different partition counts and settings.",
        fix="Remove one of the documents, or give one of the applications another id.",
        location=_location_in(second),
    )


def _version_of(raw: RawDocument, other: RawDocument) -> str:
    """Return the version of Kafka Streams that the document names, if the other one names another."""
    named, others = (each.data["application"].get("kafkaStreams") for each in (raw, other))
    return (
        "" if named == others else f" (Kafka Streams {shorten_text(str(named or DEFAULT_VERSION.release))})"
    )


def _overlapping_ids(shorter: str, short: RawDocument, longer: str, long: RawDocument) -> Problem:
    rest = longer.removeprefix(shorter + "-")
    acknowledged = any(_allows_overlap(raw) for raw in (short, long))
    return Problem(
        code=ProblemCode.APPLICATION_ID_OVERLAP,
        summary=f"The internal topics of `{longer}` have names like the internal topics of `{shorter}`.",
        application=longer,
        expected=f"an id that does not begin with `{shorter}-`",
        found=f"`{shorter}` ({_location_text(short)}) and `{longer}` ({_location_text(long)})",
        why=f"A store `{rest}-x` of `{shorter}` and a store `x` of `{longer}` have the same changelog topic. "
        f"Kafka's reset tool for `{shorter}` also deletes the topics of `{longer}`.",
        fix="Nothing, if both are in use already. Otherwise rename one of them."
        if acknowledged
        else "Rename one of them. If both are in use already, set `application.setup.allowIdOverlap: true` "
        "in one.",
        location=_location_in(long),
        severity=Severity.INFO if acknowledged else Severity.ERROR,
    )


def _allows_overlap(raw: RawDocument) -> bool:
    setup = raw.data["application"].get("setup")
    return isinstance(setup, dict) and setup.get("allowIdOverlap") is True


def _location_in(raw: RawDocument) -> Location | None:
    return raw.location(("application", "id"))


def _location_text(raw: RawDocument) -> str:
    return str(_location_in(raw) or raw.file)


_CHECKS = (handle_problems, config_problems, topic_config_problems, version_problems)


def _raw_documents(text: str, file: str) -> tuple[tuple[RawDocument, ...], tuple[Problem, ...]]:
    raws, problems = read_yaml(text, file)
    if not raws and not problems:
        return (), (_empty_file(file),)
    return raws, problems


def _check_documents(raws: Sequence[RawDocument], problems: Iterable[Problem]) -> Documents:
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
        faults = tuple(_name_application(raw, chain.from_iterable(checks)))
        found += faults
        if not errors(faults) and raw.file not in broken:
            document, faults = build_document(raw)
            found += _name_application(raw, faults)
            if document is not None and not errors(faults):
                documents.append(document)
    return Documents(tuple(documents), _sort_problems((*reading, *found, *_id_problems(raws))))


def _name_application(raw: RawDocument, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems with the application id of the document, if it has one."""
    application = application_id(raw)
    return (problem.located(application=application) for problem in problems)


def _sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in order of files, lines and columns."""
    files: dict[str, int] = {}
    placed = [(problem.location or Location(""), problem) for problem in problems]
    for location, _ in placed:
        files.setdefault(location.file, len(files))
    placed.sort(key=lambda pair: (files[pair[0].file], pair[0].line, pair[0].column))
    return tuple(problem for _, problem in placed)


def _empty_file(file: str) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary="The file contains no document.",
        expected="a topology document",
        found="only whitespace and comments",
        why="An application whose document is empty would look as if it had been removed.",
        fix="Declare the application, or remove the file.",
        location=Location(file),
    )
