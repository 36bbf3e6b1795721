"""`headwater processors status` and `move --offline`: how many processors the state has, and its move."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.console import ExitCode, print_json, print_line, print_problems
from headwater.cli.options import cluster_options, files_argument, policies_option, read_policies
from headwater.kafka import command_line
from headwater.kafka.command_line import NamedCluster, NamedPath
from headwater.model.offset_metadata import MovePhase
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater_spark.commands.console import Progress, read_documents
from headwater_spark.driver.run import runtime_installed

if TYPE_CHECKING:
    from headwater_spark.driver.processor_move.application_state import ProcessorStatus


@click.command()
@files_argument
@click.option(
    "--offline", is_flag=True, required=True, help="Confirm that no client of the application runs."
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=NamedPath(),
    help="The checkpoint folder of `headwater run`, which is locked meanwhile; default as there.",
)
@policies_option
@command_line.cluster_options("The cluster of the application.")
@click.pass_context
def move(
    context: click.Context,
    files: Sequence[Path],
    *,
    offline: bool,
    checkpoint: str | None,
    policy_files: Sequence[Path],
    cluster: NamedCluster,
) -> None:
    """Move state to the declared number of processors.

    Each key's entries of the changelog topics move to the partition of its new processor. Stop the
    application first, and start it when the move is complete. Any greater number is possible, up to the
    partition count of the inputs, and any smaller one, at least down to the initial number. Changelog topics
    keep their partitions. Everything is checked before anything changes. If the move is interrupted, run it
    again: until it is complete, the application does not start. Exit code 0: the state is as declared; 1: it
    is not.

    \b
    Examples:
      headwater processors move --offline orders.yaml --bootstrap-server localhost:9092
      headwater processors move --offline topologies/ --command-config client.properties
    """
    del offline
    with runtime_installed():
        from headwater_spark.driver.preflight import checkpoint_lock  # noqa: PLC0415 - slow
        from headwater_spark.driver.processor_move.state_move import move_state  # noqa: PLC0415 - slow
        from headwater_spark.driver.run.options import DEFAULT_FOLDER  # noqa: PLC0415 - slow
    policies = read_policies(policy_files)
    documents = _declared_documents(files)
    connection = cluster.connection()
    folder = checkpoint or str(DEFAULT_FOLDER.expanduser() / "checkpoints")
    failed: list[ProblemsError] = []
    for document in documents:
        id_ = document.application.id
        try:
            with checkpoint_lock(folder, id_):
                result = move_state(document, connection, Progress(id_).report, policies)
        except ProblemsError as error:
            failed.append(error)
            continue
        if result.before == result.after:
            print_line(f"{id_}: the state has {result.after} processors.")
        else:
            print_line(
                f"{id_}: the state has moved from {result.before} to {result.after} processors "
                f"({result.copied:,} entries copied). Run `pulumi up`, then start the application."
            )
    print_problems([problem for error in failed for problem in error.problems])
    context.exit(ExitCode.PROBLEMS if failed else ExitCode.DONE)


def _declared_documents(files: Sequence[Path]) -> Sequence[TopologyDocument]:
    """Return the documents that declare `processors`.

    Raises:
        ProblemsError: A document cannot be read.
        click.UsageError: None declares a number.
    """
    documents = read_documents(files)
    found = [document for document in documents if document.application.processors is not None]
    if not found:
        raise click.UsageError("No document declares `application.processors`.")
    return found


@click.command()
@files_argument
@cluster_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, files: Sequence[Path], *, cluster: NamedCluster, form: str) -> None:
    """Show how many processors the state has.

    For each application whose document declares `processors`: the declared number, and for each sub-topology
    with state the number of processors, the partitions of its input, and what missing processors will get.
    Changes nothing. Exit code 0: the state is as declared; 1: documents or cluster could not be read; 2: it
    has to be moved.

    \b
    Examples:
      headwater processors status topologies/ --bootstrap-server localhost:9092
      headwater processors status orders.yaml --format json
    """
    with runtime_installed():
        from headwater_spark.driver.processor_move.state_move import processor_status  # noqa: PLC0415 - slow
    documents = _declared_documents(files)
    connection = cluster.connection()
    found = [processor_status(document, connection) for document in documents]
    if form == "json":
        print_json({"applications": [_as_json(each) for each in found]})
    else:
        for each in found:
            for line in _status_lines(each):
                print_line(line)
    context.exit(ExitCode.DRIFT if any(each.needs_move for each in found) else ExitCode.DONE)


def _as_json(status: "ProcessorStatus") -> dict[str, Any]:
    move = status.move
    return {
        "application": status.application,
        "declared": status.declared,
        "subtopologies": [
            {
                "id": part.subtopology,
                "processors": part.processors,
                "inputs": dict(part.inputs),
                "added": [
                    {"processor": each.number, "keysOf": each.source, "partitions": list(each.partitions)}
                    for each in part.added
                ],
            }
            for part in status.parts
        ],
        "move": None if move is None else {"phase": move.phase.value, "from": move.before, "to": move.after},
    }


def _status_lines(status: "ProcessorStatus") -> Iterator[str]:
    move = status.move
    of = f" of {move.after}" if move is not None and move.phase is MovePhase.CATCH_UP else ""
    for part in status.parts:
        inputs = ", ".join(f"{topic} ({count})" for topic, count in part.inputs.items())
        has = "no state yet" if part.processors is None else f"{part.processors}{of} processors"
        yield f"{status.application}: sub-topology {part.subtopology}: {has}, partitions of {inputs}"
        for added in part.added:
            partitions = ", ".join(map(str, added.partitions))
            what = "partition" if len(added.partitions) == 1 else "partitions"
            yield f"  processor {added.number} gets {what} {partitions}, and keys of processor {added.source}"
    if move is not None and move.phase is MovePhase.CATCH_UP:
        yield (
            f"{status.application}: it is being expanded from {move.before} to {move.after} processors. The "
            "expansion continues while the application runs."
        )
    elif move is not None:
        yield (
            f"{status.application}: the move from {move.before} to {move.after} processors is not complete. "
            "Run `headwater processors move --offline` again."
        )
    elif status.needs_move:
        yield f"{status.application}: {_describe_remedy(status)}"


def _describe_remedy(status: "ProcessorStatus") -> str:
    """Return what to do if the state has another number of processors than declared."""
    declared = status.declared
    present = {part.processors for part in status.parts if part.processors is not None}
    if len(present) == 1 and declared < (count := present.pop()):
        if any(min(part.inputs.values(), default=count) < count for part in status.parts):
            return (
                f"{declared} processors are declared. The changelog topics have {count} partitions, more "
                "than an input: another client may have expanded them. `headwater plan` says what to do."
            )
        return (
            f"{declared} processors are declared. Declare `processors: {count}`, as the state has, and run "
            "`pulumi up`. Or stop the application, and run `headwater processors move --offline`."
        )
    return (
        f"{declared} processors are declared. The application adds them after its next start, or at once "
        f"with `headwater processors expand --to {declared}`. Or stop it, and run `headwater processors move "
        "--offline`."
    )
