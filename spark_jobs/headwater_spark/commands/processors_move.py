"""`headwater processors move --offline`: more or fewer processors for an application that is stopped."""

from collections.abc import Sequence
from pathlib import Path

import click

from headwater.cli.console import ExitCode, print_problems
from headwater.cli.options import files_argument, policies_option
from headwater.cli.policies import read_policies
from headwater.kafka.command_line import cluster_options, connection
from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import load_documents
from headwater_spark.commands.progress import Progress
from headwater_spark.driver.run.installed import runtime_installed


@click.command()
@files_argument
@click.option(
    "--offline", is_flag=True, required=True, help="Confirm that no client of the application runs."
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="The checkpoint folder of `headwater run`, which is locked meanwhile; default as there.",
)
@policies_option
@cluster_options("The cluster of the application.")
@click.pass_context
def move(
    context: click.Context,
    files: Sequence[Path],
    *,
    offline: bool,
    checkpoint: str | None,
    policy_files: Sequence[Path],
    bootstrap_server: str | None,
    command_config: Path | None,
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
        from headwater_spark.driver.processor_move.start import move_state  # noqa: PLC0415 - slow
        from headwater_spark.driver.run.options import DEFAULT_FOLDER  # noqa: PLC0415 - slow
    policies = read_policies(policy_files)
    documents = declared_documents(files)
    cluster = connection(bootstrap_server, command_config)
    folder = checkpoint or str(DEFAULT_FOLDER.expanduser() / "checkpoints")
    failed: list[ProblemsError] = []
    for document in documents:
        id_ = document.application.id
        try:
            with checkpoint_lock(folder, id_):
                result = move_state(document, cluster, Progress(id_).report, policies)
        except ProblemsError as error:
            failed.append(error)
            continue
        if result.before == result.after:
            click.echo(f"{id_}: the state has {result.after} processors.")
        else:
            click.echo(
                f"{id_}: the state has moved from {result.before} to {result.after} processors "
                f"({result.copied:,} entries copied). Run `pulumi up`, then start the application."
            )
    print_problems([problem for error in failed for problem in error.problems])
    context.exit(ExitCode.PROBLEMS if failed else ExitCode.DONE)


def declared_documents(files: Sequence[Path]) -> Sequence[TopologyDocument]:
    """Return the documents that declare `processors`.

    Raises:
        ProblemsError: A document cannot be read.
        click.UsageError: None declares a number.
    """
    loaded = load_documents(files)
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    print_problems(loaded.problems)
    found = [document for document in loaded.documents if document.application.processors is not None]
    if not found:
        raise click.UsageError("No document declares `application.processors`.")
    return found
