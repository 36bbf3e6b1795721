"""The application of an exported topology: its version, protocol and config count as if they were declared.

A user may add configs to `application.config`, which the code does not have. A declared value that is not the
exported one is an error: the topics would not be what the code needs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from headwater.model.problems import Problem, ProblemCode
from headwater.model.versions import logged_version, read_any_version
from headwater.spec.locations import PathPart, Position, RawDocument
from headwater.spec.phrases import shorten
from headwater.spec.scalars import config_text

_PATH = ("exported", "application")
_VERSION = "kafkaStreams"


def with_exported_application(raw: RawDocument) -> RawDocument:
    """Return the document with the exported facts in `application`; values that are declared there stay."""
    application, exported = _application(raw), _exported(raw)
    if application is None or exported is None:
        return raw
    facts = {key: value for key, value in exported.items() if key != "id"}
    if isinstance(facts.get(_VERSION), str):
        facts[_VERSION] = _known_version(facts[_VERSION])
    merged = {**facts, **application}
    declared = _mapping(application.get("config"))
    if config := {**_mapping(exported.get("config")), **declared}:
        merged["config"] = config
    own, found = raw.position.child("application"), raw.position.child("exported").child("application")
    position = _joined(own, found)
    children = {**_children(position), "config": _joined(own.child("config"), found.child("config"))}
    positions = {**_children(raw.position), "application": position._replace(children=children)}
    return attrs.evolve(
        raw,
        data={**raw.data, "application": merged},
        position=raw.position._replace(children=positions),
    )


def exported_application_problems(raw: RawDocument) -> Iterator[Problem]:
    """Yield a problem for each declared fact that is not the exported one."""
    application, exported = _application(raw), _exported(raw)
    if application is None or exported is None:
        return
    pairs: list[tuple[tuple[PathPart, ...], object, object]] = [
        ((key,), application[key], exported[key])
        for key in ("id", "protocol")
        if key in application
        if key in exported
    ]
    if _VERSION in application and isinstance(exported.get(_VERSION), str):
        known = read_any_version(_known_version(exported[_VERSION]))
        declared = read_any_version(_text(application[_VERSION]))
        if known is None or declared is None or known.release != declared.release:
            pairs.append(((_VERSION,), application[_VERSION], exported[_VERSION]))
    config = _mapping(exported.get("config"))
    pairs += [
        (("config", key), value, config[key])
        for key, value in _mapping(application.get("config")).items()
        if key in config
    ]
    for path, declared_value, exported_value in pairs:
        if _text(declared_value) != _text(exported_value):
            yield _contradiction(raw, path, _text(declared_value), _text(exported_value))


def _known_version(text: str) -> str:
    """Return the version that the library reports, as documents name it: `7.6.0-ccs` is `3.6`."""
    logged = logged_version(f"Kafka Streams version: {text}") or text
    known = read_any_version(logged)
    return text if known is None else str(known)


def _contradiction(raw: RawDocument, path: tuple[PathPart, ...], declared: str, exported: str) -> Problem:
    name = ".".join(map(str, path))
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"`application.{name}` is not what the code of the application has.",
        expected=f"`{shorten(exported)}`, as in `exported`",
        found=f"`{shorten(declared)}`",
        why="The application would need other topics than the document declares.",
        fix=(
            "Correct the id. If the application has another id now, give it a document of its own."
            if path == ("id",)
            else f"Remove `{name}` from `application`. If the code has changed, export the topology again."
        ),
        location=raw.location(("application", *path)),
    )


def _application(raw: RawDocument) -> dict[str, Any] | None:
    application = raw.data.get("application") if isinstance(raw.data, dict) else None
    return application if isinstance(application, dict) else None


def _exported(raw: RawDocument) -> dict[str, Any] | None:
    section = raw.data.get("exported") if isinstance(raw.data, dict) else None
    application = section.get("application") if isinstance(section, dict) else None
    return application if isinstance(application, dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return config_text(value) if isinstance(value, str | int | float) else ""


def _children(position: Position) -> Mapping[str, Position]:
    return position.children if isinstance(position.children, Mapping) else {}


def _joined(own: Position, other: Position) -> Position:
    return own._replace(children={**_children(other), **_children(own)})
