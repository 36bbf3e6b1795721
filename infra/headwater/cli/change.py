"""`headwater change`: show what an edit of topologies does to state, records in flight and offsets.

The files before the edit are files at a revision of a Git repository, or setup records.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from headwater.cli.console import print_line, print_problems
from headwater.cli.edit_inputs import (
    DEFAULT_ID,
    FORMATS,
    EditInputs,
    edit_exit_code,
    id_in_records,
    load_side,
    load_sides,
    require_text,
    show_edit,
)
from headwater.cli.git_files import files_at
from headwater.cli.options import (
    cluster_options,
    output_option,
    partitions_option,
    project_option,
    stack_state_option,
)
from headwater.kafka.command_line import NamedCluster, NamedPath
from headwater.model.records import SetupRecord


@click.command()
@click.argument("paths", nargs=-1, required=True, type=NamedPath(path_type=Path), metavar="[OLD] NEW...")
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
    help="The application of a text of Topology#describe(). Default: the id in a single document on the "
    f"other side, otherwise `{DEFAULT_ID}`.",
)
@partitions_option("Partition count of an existing topic; overrides the cluster. May be repeated.")
@cluster_options
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
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
    id_: str | None,
    given: Sequence[tuple[str, int]],
    cluster: NamedCluster,
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
    sources = EditInputs(cluster, dict(given))
    if has_records:
        records = _load_records(stack, project, stack_state)
        new = load_side(paths, id_in_records(paths, records, id_))
        if not records:
            print_line("The stack has no setup record: no `pulumi up` has recorded an application.", err=True)
        found = sources.since_setup(records, new.documents)
    elif revision is not None:
        require_text((paths,), id_)
        new = load_side(paths, id_)
        with files_at(revision, paths) as old_paths:
            old = load_side(old_paths, id_, is_empty_allowed=True)
        found = sources.compare(old.documents, new.documents)
    else:
        old, new = load_sides(paths[:1], paths[1:], id_)
        found = sources.compare(old.documents, new.documents)
    print_problems(new.problems)
    show_edit(found, form, output)
    context.exit(edit_exit_code(found))


def _load_records(stack: str | None, project: Path, state: Path | None) -> Mapping[str, SetupRecord]:
    from headwater.cli.stack import read_state, read_state_file  # noqa: PLC0415 - imports Pulumi's toolchain

    return (read_state(str(stack), project) if state is None else read_state_file(state, stack)).records
