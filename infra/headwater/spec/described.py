"""Documents with the text of `Topology#describe()` instead of calls (`describe`)."""

from pathlib import Path
from typing import Any

from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import CreatedBy, DescribedTopology, StoreDetail, UnknownDetails
from headwater.spec.build_stores import Options, duration, topic_config
from headwater.spec.files import DOCUMENT, read_confined
from headwater.spec.locations import RawDocument
from headwater.spec.phrases import shorten


def described_topology(
    raw: RawDocument, given: str | Options, application_id: str
) -> tuple[DescribedTopology | None, tuple[Problem, ...]]:
    """Return the described topology and problems. A file must be in or below the document's folder."""
    options: Options = {"file": given} if isinstance(given, str) else given
    path = ("describe",) if isinstance(given, str) else ("describe", "file" if "file" in options else "text")
    at = raw.location(path) or Location(raw.file)
    text, file = options.get("text", ""), raw.file
    if "file" in options:
        name, folder = options["file"], Path(raw.file).parent
        content = read_confined(folder, name, DOCUMENT, code=ProblemCode.UNREADABLE_DESCRIBE, at=at)
        if not isinstance(content, str):
            return None, (_outside(name, at) if content is None else content,)
        text, file = content, str(folder / name)
    elif not file.endswith(".json"):  # so that line numbers are those of the file
        text = "\n" * at.line + text
    from headwater.describe import read_description, without_prefix  # noqa: PLC0415 - imports the compiler, which documents with calls do not need

    chosen = options.get("topology")
    nodes, problems = read_description(text, file, None if chosen is None else str(chosen))
    described = DescribedTopology(
        without_prefix(nodes, application_id),
        at=at,
        repartition_partitions=dict(options.get("repartitions", {})),
        stores={name: _detail(detail) for name, detail in options.get("stores", {}).items()},
        copartitioned=tuple(tuple(group) for group in options.get("copartitioned", ())),
        created_by={topic: CreatedBy(call) for topic, call in options.get("createdBy", {}).items()},
        unknown=_unknown(options.get("unknown", {})),
    )
    return described, problems


def _outside(name: str, at: Location) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DESCRIBE,
        summary="`file` is outside of the document's folder.",
        expected="a file in or below the document's folder",
        found=f"`{shorten(name)}`",
        why="A document must not be able to read any file of this machine.",
        fix="Move the text into the document's folder, or into the document with `text: |`.",
        location=at,
    )


def _unknown(options: dict[str, Any]) -> UnknownDetails:
    return UnknownDetails(
        stores={name: tuple(details) for name, details in options.get("stores", {}).items()},
        repartitions=tuple(options.get("repartitions", ())),
        created_by=tuple(options.get("createdBy", ())),
        application=tuple(options.get("application", ())),
    )


def _detail(options: dict[str, Any]) -> StoreDetail:
    default = StoreDetail()
    return StoreDetail(
        kind=options.get("kind"),
        retention_ms=duration(options, "retention"),
        retain_duplicates=options.get("retainDuplicates", default.retain_duplicates),
        logging=options.get("logging", default.logging),
        overrides=topic_config(options.get("overrides")),
        source_topic=options.get("sourceTopic"),
        has_own_changelog=options.get("ownChangelog", default.has_own_changelog),
    )
