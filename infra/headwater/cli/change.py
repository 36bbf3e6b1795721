"""`headwater change`: show what an edit of topologies does to state, records in flight and offsets."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from headwater.cli.cluster import read_snapshot
from headwater.cli.console import ProblemsExit, json_text, print_problems, write
from headwater.cli.exit_codes import ExitCode
from headwater.cli.git_revision import files_at
from headwater.cli.options import Count, cluster_options, output_option, project_option, stack_state_option
from headwater.kafka.command_line import named_connection
from headwater.model.callers import OFFLINE, PLAN
from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import ProblemsError, errors
from headwater.model.record import SetupRecord
from headwater.model.topology import TopologyDocument
from headwater.planner.edits import (
    Edit,
    Topologies,
    compile_topologies,
    find_edit,
    find_edit_since_setup,
)
from headwater.spec import Documents, load_documents, parse_document

_FORMATS = ("text", "json", "markdown")
_TEXT_ID = "application"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="[OLD] NEW...")
@click.option(
    "--git",
    "revision",
    metavar="REVISION",
    help="Compare the files at this revision of the Git repository with the working tree.",
)
@click.option("--stack", metavar="STACK", help="Compare with the setup records of this Pulumi stack.")
@project_option
@stack_state_option
@click.option(
    "--application-id",
    "id_",
    metavar="ID",
    default=_TEXT_ID,
    show_default=True,
    help="The application of two texts of Topology#describe().",
)
@click.option(
    "--partitions",
    "given",
    multiple=True,
    type=Count(),
    help="Partition count of an existing topic; overrides the cluster. May be repeated.",
)
@cluster_options
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def change(
    context: click.Context,
    paths: Sequence[Path],
    *,
    revision: str | None,
    stack: str | None,
    project: Path,
    stack_state: Path | None,
    id_: str,
    given: Sequence[tuple[str, int]],
    bootstrap_server: str | None,
    command_config: Path | None,
    form: str,
    output: Path | None,
) -> None:
    """Show what an edit of topologies does to state, records in flight and committed offsets.

    OLD and NEW are documents, folders, or texts of Topology#describe(). With --git, --stack or --stack-state,
    there is no OLD. Each store and repartition topic is kept, renamed, reset, moved, orphaned, rebuilt,
    added, or unknown with the reason; lines are shown that keep renamed topics. Changes nothing. With a
    cluster, topics that do not exist have no data to lose. Exit code 0: nothing changes; 1: documents,
    revision or cluster could not be read; 2: something changes; 3: a verdict is unknown, or an application
    has errors.

    \b
    Examples:
      headwater change before.yaml after.yaml
      headwater change topologies/ --git origin/main --format markdown
      headwater change before.describe.txt after.describe.txt --application-id orders
      headwater change topologies/ --stack production --bootstrap-server localhost:9092
    """
    has_records = stack is not None or stack_state is not None
    if revision is not None and has_records:
        raise click.UsageError("--git cannot be combined with --stack and --stack-state.")
    if revision is None and not has_records and len(paths) != 2:  # noqa: PLR2004 - OLD and NEW
        raise click.UsageError("Name OLD and NEW, or one of --git, --stack and --stack-state.")
    sources = _Inputs(bootstrap_server, command_config, dict(given))
    if has_records:
        new = _load(paths, id_)
        found = sources.since_setup(_records(stack, project, stack_state), new)
    elif revision is not None:
        new = _load(paths, id_)
        with files_at(revision, paths) as old_paths:
            old = _load(old_paths, id_, is_empty_allowed=True)
        found = sources.compare(old, new)
    else:
        old, new = _load(paths[:1], id_), _load(paths[1:], id_)
        found = sources.compare(old, new)
    print_problems(new.problems)
    show_edit(found, form, output)
    context.exit(edit_exit_code(found))


def _load(paths: Sequence[Path], id_: str, *, is_empty_allowed: bool = False) -> Documents:
    """Read documents or texts. Raises `ProblemsExit` if they have errors."""
    if not paths and is_empty_allowed:
        return Documents()
    if len(paths) == 1 and (text := _description(paths[0])) is not None:
        loaded = parse_document({"application": {"id": id_}, "describe": {"text": text}}, str(paths[0]))
    else:
        loaded = load_documents(paths)
    if errors(loaded.problems):
        raise ProblemsExit(ProblemsError(loaded.problems))
    return loaded


def _description(path: Path) -> str | None:
    """Return the text of a file that `Topology#describe()` wrote; None for documents and folders."""
    if not path.is_file() or path.suffix.lower() in (".yaml", ".yml", ".json"):
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from None


def _records(stack: str | None, project: Path, state: Path | None) -> Mapping[str, SetupRecord]:
    from headwater.cli.stack import parse_state, read_state  # noqa: PLC0415 - imports Pulumi's toolchain

    if state is None:
        return read_state(str(stack), project).records
    with click.open_file(str(state), encoding="utf-8") as file:
        return parse_state(file.read(), str(state)).records


class _Inputs:
    """The partition counts with which both sides are compiled: given, of a cluster, or the same for all."""

    def __init__(
        self, bootstrap_server: str | None, command_config: Path | None, given: Mapping[str, int]
    ) -> None:
        self._cluster = (bootstrap_server, command_config)
        self._given = given

    def compare(self, old: Documents, new: Documents) -> Edit:
        snapshot = self._snapshot((*old.documents, *new.documents))
        before, after, assumed = self._compiled(old.documents, new.documents, snapshot)
        return find_edit(before, after, snapshot=snapshot, assumed=assumed)

    def since_setup(self, records: Mapping[str, SetupRecord], new: Documents) -> Edit:
        from headwater.planner.upgrade import with_recorded_versions  # noqa: PLC0415 - only for a stack

        documents = with_recorded_versions(new.documents, records)
        snapshot = self._snapshot(documents)
        _, after, assumed = self._compiled((), documents, snapshot)
        return find_edit_since_setup(records, after, snapshot=snapshot, assumed=assumed)

    def _snapshot(self, documents: Sequence[TopologyDocument]) -> ClusterSnapshot | None:
        try:
            connection = named_connection(*self._cluster)
            return read_snapshot(documents, connection) if connection else None
        except ProblemsError as error:
            raise ProblemsExit(error) from None

    def _compiled(
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
            for topology in side.of.values()
            for topic in topology.compiled.missing_sources
        }
        if snapshot is None and assumed:
            # All get the same count, so that names can be compared.
            counts = {**counts, **dict.fromkeys(assumed, 1), **_observed_counts(new)}
            before, after = (compile_topologies(side, counts, caller) for side in (old, new))
            return before, after, assumed
        return before, after, set()


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

            write(json_text(edit_json(found)), output)
        case "markdown":
            from headwater.report.edits.markdown import edit_markdown  # noqa: PLC0415

            write(edit_markdown(found), output)
        case _ if output is None and sys.stdout.isatty():
            from rich.console import Console  # noqa: PLC0415

            from headwater.report.edits.text import edit_rich  # noqa: PLC0415

            Console(highlight=False, soft_wrap=True).print(edit_rich(found))
        case _:
            from headwater.report.edits.text import edit_text  # noqa: PLC0415

            write(f"{edit_text(found)}\n", output)


def edit_exit_code(found: Edit) -> ExitCode:
    """Return the exit code for pipelines."""
    if not found.is_complete:
        return ExitCode.REFUSED
    return ExitCode.DRIFT if found.has_changes else ExitCode.DONE
