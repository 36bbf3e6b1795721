"""What `headwater change` and `headwater upgrade --before` compare, and how they print the edit.

Each of the two sides is documents, or a text of `Topology#describe()`.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import click

from headwater.cli.console import ExitCode, json_text, print_rich, write_text
from headwater.cli.inputs import read_named_cluster
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.input_files import LARGEST_TEXT, read_text
from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import OFFLINE, PLAN, ProblemsError, errors
from headwater.model.records import SetupRecord
from headwater.model.topology import TopologyDocument
from headwater.planner.edits import (
    Edit,
    Topologies,
    compile_topologies,
    find_edit,
    find_edit_since_setup,
    with_same_versions,
)
from headwater.spec import Documents, load_documents, parse_document

FORMATS = ("text", "json", "markdown", "html")
DEFAULT_ID = "application"
"""The id of an application of which only texts are known."""
_DOCUMENT_SUFFIXES = (".yaml", ".yml", ".json")


def load_side(paths: Sequence[Path], id_: str | None = None, *, is_empty_allowed: bool = False) -> Documents:
    """Read documents or texts. Raises `ProblemsError` if they have errors."""
    if not paths and is_empty_allowed:
        return Documents()
    if len(paths) == 1 and (text := _read_description(paths[0])) is not None:
        # A file without text is no field without text: its problem is that it contains no description.
        description = {"text": text or "\n"}
        loaded = parse_document(
            {"application": {"id": id_ or DEFAULT_ID}, "describe": description}, str(paths[0])
        )
    else:
        loaded = load_documents(paths)
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    return loaded


def load_sides(old: Sequence[Path], new: Sequence[Path], id_: str | None) -> tuple[Documents, Documents]:
    """Read both sides; without `id_`, a text has the application id of a single document on the other side.

    Raises:
        ProblemsError: A document has errors.
        click.UsageError: It is not known which application a text describes.
    """
    require_text((old, new), id_)
    if _is_text(old) and not _is_text(new):
        after = load_side(new)
        return load_side(old, _id_of_text(old, after, id_)), after
    before = load_side(old, id_)
    if _is_text(new) and not _is_text(old):
        id_ = _id_of_text(new, before, id_)
    return before, load_side(new, id_)


def load_before(path: Path, new: Documents) -> Documents:
    """Read what runs before documents. Raises as `load_sides`."""
    return load_side([path], _id_of_text([path], new, None) if _is_text([path]) else None)


def require_text(sides: Iterable[Sequence[Path]], id_: str | None) -> None:
    """Raise `click.UsageError` if an application id is given, and no side is a text."""
    if id_ is not None and not any(map(_is_text, sides)):
        raise click.UsageError("--application-id is for texts of Topology#describe(): documents have ids.")


def _id_of_text(text: Sequence[Path], other: Documents, id_: str | None) -> str | None:
    """Return the id of the application of a text, which is compared with documents."""
    ids = [document.application.id for document in other.documents]
    if len(ids) > 1 and id_ not in ids:
        raise click.UsageError(
            f"Name the application that {text[0]} describes by --application-id: {', '.join(sorted(ids))}."
        )
    return id_ if id_ is not None or not ids else ids[0]


def id_in_records(paths: Sequence[Path], records: Collection[str], id_: str | None) -> str | None:
    """Return the application id of a text that is compared with setup records; None for documents.

    Raises `click.UsageError` if it is not known which application a text describes.
    """
    require_text((paths,), id_)
    if not _is_text(paths) or id_ is not None:
        return id_
    if len(records) != 1:
        raise click.UsageError(
            f"Name the application that {paths[0]} describes by --application-id: "
            f"{', '.join(sorted(records)) or 'the stack has no setup record'}."
        )
    return next(iter(records))


def _is_text(paths: Sequence[Path]) -> bool:
    return len(paths) == 1 and paths[0].is_file() and paths[0].suffix.lower() not in _DOCUMENT_SUFFIXES


def _read_description(path: Path) -> str | None:
    """Return the text of a file that `Topology#describe()` wrote; None for documents and folders."""
    if not _is_text([path]):
        return None
    try:
        return read_text(path, LARGEST_TEXT)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.ClickException(f"{path} cannot be read: {reason}.") from None


class EditInputs:
    """Compiles both sides with the same partition counts: given ones, of a cluster, or one for all topics."""

    def __init__(self, cluster: NamedCluster, given: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._given = given

    def compare(self, old: Sequence[TopologyDocument], new: Sequence[TopologyDocument]) -> Edit:
        """Return the edit from `old` to `new`. Raises `ProblemsError` if the cluster cannot be read."""
        old, new = with_same_versions(old, new)
        snapshot = read_named_cluster((*old, *new), self._cluster)
        before, after, assumed = self._compile_sides(old, new, snapshot)
        return find_edit(before, after, snapshot=snapshot, assumed=assumed)

    def since_setup(self, records: Mapping[str, SetupRecord], new: Sequence[TopologyDocument]) -> Edit:
        """Return the edit since the last setup. Raises `ProblemsError` if the cluster cannot be read."""
        from headwater.planner.upgrade import with_recorded_versions  # noqa: PLC0415 - only for a stack

        documents = with_recorded_versions(new, records)
        snapshot = read_named_cluster(documents, self._cluster)
        _, after, assumed = self._compile_sides((), documents, snapshot)
        return find_edit_since_setup(records, after, snapshot=snapshot, assumed=assumed)

    def _compile_sides(
        self,
        old: Sequence[TopologyDocument],
        new: Sequence[TopologyDocument],
        snapshot: ClusterSnapshot | None,
    ) -> tuple[Topologies, Topologies, set[str]]:
        counts = {**(snapshot.partitions if snapshot is not None else {}), **self._given}
        caller = OFFLINE if snapshot is None else PLAN
        before, after = (compile_topologies(side, counts, caller) for side in (old, new))
        assumed = {
            topic
            for side in (before, after)
            for topology in side.by_id.values()
            for topic in topology.compiled.missing_sources
        }
        if assumed:
            # All get the same count, so that names can be compared: the count of other sources, if it is
            # known, because they may be joined.
            known = [
                counts[topic]
                for side in (before, after)
                for topology in side.by_id.values()
                for topic in topology.compiled.external_sources
                if topic in counts
            ]
            count = max(known, default=1)
            counts = {**counts, **dict.fromkeys(assumed, count), **_observed_counts(new)}
            before, after = (compile_topologies(side, counts, caller) for side in (old, new))
        return before, after, assumed


def _observed_counts(documents: Sequence[TopologyDocument]) -> Mapping[str, int]:
    """Return source topic → count of documents with observed topics: they are valid for these only."""
    return {
        topic: count
        for document in documents
        if document.observed is not None
        for topic, count in document.observed.sources.items()
    }


def show_edit(found: Edit, form: str, output: Path | None) -> None:
    """Print the report, with colors in a terminal."""
    # Each format imports only what it needs.
    match form:
        case "json":
            from headwater.report.edits.to_json import edit_json  # noqa: PLC0415

            write_text(json_text(edit_json(found)), output)
        case "markdown":
            from headwater.report.edits.texts import short_markdown  # noqa: PLC0415

            write_text(short_markdown(found), output)
        case "html":
            from headwater.report.edits.page import edit_page  # noqa: PLC0415

            write_text(edit_page(found), output)
        case _ if output is None and sys.stdout.isatty():
            from headwater.report.edits.texts import edit_rich  # noqa: PLC0415

            print_rich(edit_rich(found))
        case _:
            from headwater.report.edits.texts import edit_text  # noqa: PLC0415

            write_text(f"{edit_text(found)}\n", output)


def edit_exit_code(found: Edit) -> ExitCode:
    """Return the exit code for pipelines."""
    if not found.is_complete:
        return ExitCode.REFUSED
    return ExitCode.DRIFT if found.has_changes else ExitCode.DONE
