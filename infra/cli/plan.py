"""`headwater plan`: the plan for a cluster, without Pulumi."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from infra import planner
from infra.cli import cluster
from infra.cli.console import ProblemsExit, exit_for, print_problems
from infra.cli.exit_codes import ExitCode
from infra.cli.options import cluster_options, files_argument
from infra.compiler import compile_documents
from infra.model.problems import ProblemsError
from infra.model.record import SetupRecord
from infra.observe import Connection
from infra.spec import Documents, load_documents


@click.command()
@files_argument
@cluster_options
@click.option(
    "--stack",
    metavar="STACK",
    help="Read the recorded set-ups from this Pulumi stack; without it nothing counts as set up.",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="The folder of Pulumi.yaml, for --stack.",
)
@click.pass_context
def plan(
    context: click.Context,
    files: Sequence[Path],
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    stack: str | None,
    project: Path,
) -> None:
    """Show what `pulumi up` would do to a cluster.

    It is the plan that a preview shows, made without running Pulumi; nothing is changed. Exit code 3 if the
    plan is refused, 1 if it could not be made.

    \b
    Examples:
      headwater plan topologies/ --bootstrap-server localhost:9092
      headwater plan topologies/ --command-config client.properties --stack production
    """
    loaded = load_documents(files)
    if exit_for(loaded.problems):
        print_problems(loaded.problems)
        context.exit(ExitCode.PROBLEMS)
    try:
        made = _plan(
            loaded, _records(stack, project), _connection(bootstrap_server, command_config), _milliseconds()
        )
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    _print(made)
    print_problems((*loaded.problems, *made.problems))
    context.exit(exit_for(made.problems, ExitCode.REFUSED))


def _plan(
    loaded: Documents, records: Mapping[str, SetupRecord], connection: Connection, start_ms: int
) -> planner.Plan:
    snapshot = cluster.read(loaded.documents, records, connection)
    compiled = compile_documents(loaded.documents, snapshot.partitions)
    return planner.plan(compiled, snapshot, records, planner.PlanPolicy(), _milliseconds() - start_ms)


def _connection(bootstrap_server: str | None, command_config: Path | None) -> Connection:
    return cluster.connection(bootstrap_server, command_config) or Connection.from_environment(os.environ)


def _records(stack: str | None, project: Path) -> Mapping[str, SetupRecord]:
    if stack is None:
        return {}
    from infra.cli.stack import recorded_setups  # noqa: PLC0415 - needs Pulumi's toolchain

    return recorded_setups(stack, project)


def _print(made: planner.Plan) -> None:
    from rich.console import Console  # noqa: PLC0415 - after the slow part

    from infra.report.plan_text import plan_rich  # noqa: PLC0415 - likewise

    Console(highlight=False, soft_wrap=True).print(plan_rich(made))


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
