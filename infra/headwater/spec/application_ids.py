"""Application ids of several documents: equal ids, and ids that overlap."""

from collections.abc import Iterator, Sequence

from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.model.versions import DEFAULT_VERSION
from headwater.spec.locations import RawDocument
from headwater.spec.phrases import shorten

_LONGEST_ID = 249


def id_problems(documents: Sequence[RawDocument]) -> tuple[Problem, ...]:
    """Return problems for documents with the same id, and for ids that begin with another id and a hyphen."""
    first: dict[str, RawDocument] = {}
    problems: list[Problem] = []
    for raw in documents:
        name = application_id(raw)
        if name is None:
            continue
        if name in first:
            problems.append(_duplicate(name, first[name], raw))
        else:
            first[name] = raw
    for name, raw in first.items():
        problems.extend(
            _overlap(shorter, first[shorter], name, raw) for shorter in _beginnings(name) if shorter in first
        )
    return tuple(problems)


def application_id(raw: RawDocument) -> str | None:
    """Return the application id of a document that may have other errors; None if it is not valid."""
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    found = application.get("id") if isinstance(application, dict) else None
    return found if isinstance(found, str) and 0 < len(found) <= _LONGEST_ID else None


def _beginnings(name: str) -> Iterator[str]:
    return (name[:index] for index, character in enumerate(name) if character == "-" and index)


def _duplicate(name: str, first: RawDocument, second: RawDocument) -> Problem:
    return Problem(
        code=ProblemCode.DUPLICATE_APPLICATION,
        summary=f"Two documents declare the application `{name}`.",
        application=name,
        expected="one document per application",
        found=f"{_location(first)}{_version(first, second)} and {_location(second)}{_version(second, first)}",
        why="Both would manage the same internal topics, with different partition counts and settings.",
        fix="Remove one of the documents, or give one of the applications another id.",
        location=_at(second),
    )


def _version(raw: RawDocument, other: RawDocument) -> str:
    """Return the version of Kafka Streams that the document names, if the other one names another."""
    named, others = (each.data["application"].get("kafkaStreams") for each in (raw, other))
    return "" if named == others else f" (Kafka Streams {shorten(str(named or DEFAULT_VERSION.release))})"


def _overlap(shorter: str, short: RawDocument, longer: str, long: RawDocument) -> Problem:
    rest = longer.removeprefix(shorter + "-")
    acknowledged = any(_acknowledges(raw) for raw in (short, long))
    return Problem(
        code=ProblemCode.APPLICATION_ID_OVERLAP,
        summary=f"The internal topics of `{longer}` have names like those of `{shorter}`.",
        application=longer,
        expected=f"an id that does not begin with `{shorter}-`",
        found=f"`{shorter}` ({_location(short)}) and `{longer}` ({_location(long)})",
        why=f"A store `{rest}-x` of `{shorter}` and a store `x` of `{longer}` have the same changelog topic. "
        f"Kafka's reset tool for `{shorter}` also deletes the topics of `{longer}`.",
        fix="Rename one of them. If both are in use already, set `application.setup.allowIdOverlap: true` in "
        "one.",
        location=_at(long),
        severity=Severity.WARNING if acknowledged else Severity.ERROR,
    )


def _acknowledges(raw: RawDocument) -> bool:
    setup = raw.data["application"].get("setup")
    return isinstance(setup, dict) and setup.get("allowIdOverlap") is True


def _at(raw: RawDocument) -> Location | None:
    return raw.location(("application", "id"))


def _location(raw: RawDocument) -> str:
    return str(_at(raw) or raw.file)
