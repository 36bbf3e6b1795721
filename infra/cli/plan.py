"""`headwater plan`: the plan for a cluster, without Pulumi."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit, exit_for, print_problems
from infra.cli.exit_codes import ExitCode
from infra.cli.options import cluster_options, files_argument, policies_option
from infra.model.problems import ProblemsError
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import KafkaClusterReader

if TYPE_CHECKING:
    from infra.model.policies import Policy
    from infra.planner import Plan


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
@policies_option
@click.pass_context
def plan(
    context: click.Context,
    files: Sequence[Path],
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    stack: str | None,
    project: Path,
    policy_files: Sequence[Path],
) -> None:
    """Show what `pulumi up` would do to a cluster.

    It is the plan that a preview shows, made without running Pulumi; nothing is changed. Exit code 3 if the
    plan is refused, 1 if it could not be made.

    \b
    Examples:
      headwater plan topologies/ --bootstrap-server localhost:9092
      headwater plan topologies/ --command-config client.properties --stack production
      headwater plan topologies/ --bootstrap-server localhost:9092 --policies headwater-policies.yaml
    """
    policies = _policies(policy_files)
    try:
        loaded, reader = cluster.opened(files, bootstrap_server, command_config)
        made = _plan(loaded.documents, _records(stack, project), reader, policies)
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    _print(made)
    print_problems((*loaded.problems, *made.problems))
    context.exit(exit_for(made.problems, ExitCode.REFUSED))


def _plan(
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord],
    reader: KafkaClusterReader,
    policies: "tuple[Policy, ...]",
) -> "Plan":
    start_ms = _milliseconds()
    compiled, snapshot = cluster.compiled(documents, records, reader)
    from infra import planner  # noqa: PLC0415 - likewise

    limits = planner.PlanPolicy(policies=policies)
    return planner.plan(compiled, snapshot, records, limits, _milliseconds() - start_ms)


def _policies(files: Sequence[Path]) -> "tuple[Policy, ...]":
    if not files:
        return ()
    from infra.cli.policies import read_policies  # noqa: PLC0415 - likewise

    return read_policies(files)


def _records(stack: str | None, project: Path) -> Mapping[str, SetupRecord]:
    if stack is None:
        return {}
    from infra.cli.stack import recorded_setups  # noqa: PLC0415 - needs Pulumi's toolchain

    return recorded_setups(stack, project)


def _print(made: "Plan") -> None:
    from rich.console import Console  # noqa: PLC0415 - after the slow part

    from infra.report.plan_text import plan_rich  # noqa: PLC0415 - likewise

    Console(highlight=False, soft_wrap=True).print(plan_rich(made))


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
