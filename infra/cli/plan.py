"""`headwater plan`: print the plan for a cluster, without Pulumi."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from infra.cli.console import ProblemsExit, exit_for, print_problems
from infra.cli.exit_codes import ExitCode
from infra.cli.options import files_argument, policies_option, project_option, stack_cluster_options
from infra.cli.stack_context import StackContext, StackOptions, load_context
from infra.model.problems import ProblemsError

if TYPE_CHECKING:
    from infra.model.policies import Policy
    from infra.planner import Plan


@click.command()
@files_argument
@stack_cluster_options
@click.option(
    "--stack",
    metavar="STACK",
    help="Read setup records, limits and setup options of this Pulumi stack. Without it, no application "
    "counts as set up.",
)
@project_option
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

    Prints the same plan as a preview, without running Pulumi and without changing anything. Exit code 3: the
    plan is refused; 1: it could not be made.

    \b
    Examples:
      headwater plan topologies/ --bootstrap-server localhost:9092
      headwater plan topologies/ --command-config client.properties --stack production
      headwater plan topologies/ --bootstrap-server localhost:9092 --policies headwater-policies.yaml
    """
    policies = _policies(policy_files)
    options = StackOptions(name=stack, project=project)
    try:
        inputs = load_context(files, bootstrap_server, command_config, options)
        result = _validated(inputs, _plan(inputs, policies))
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    _print(result)
    print_problems((*inputs.document_problems, *inputs.stack_problems, *result.problems), after_result=True)
    context.exit(exit_for((*inputs.stack_problems, *result.problems), ExitCode.REFUSED))


def _plan(inputs: StackContext, policies: "tuple[Policy, ...]") -> "Plan":
    start_ms = _milliseconds()
    compiled, snapshot = inputs.compile()
    from infra import planner  # noqa: PLC0415 - imported after the requests are sent
    from infra.apply.unknown_replication import unknown_replication  # noqa: PLC0415 - same
    from infra.planner.upgrade import compile_recorded  # noqa: PLC0415 - same

    limits = planner.PlanPolicy(
        cluster_id=inputs.cluster_id, policies=(*inputs.policies, *policies), stack=inputs.stack
    )
    records = inputs.records or {}
    earlier = compile_recorded(inputs.documents, records, snapshot.partitions)
    elapsed_ms = _milliseconds() - start_ms
    result = planner.plan(compiled, snapshot, records, limits, elapsed_ms, earlier=earlier)
    return attrs.evolve(result, problems=(*result.problems, *unknown_replication(result)))


def _validated(inputs: StackContext, result: "Plan") -> "Plan":
    """Return the plan with what the brokers refuse of it; they validate it without executing it."""
    if not (result.is_applicable and any(action.is_change for action in result.actions)):
        return result
    from infra.apply.validation import refusals  # noqa: PLC0415 - same
    from infra.change import admin_client  # noqa: PLC0415 - same

    refused = refusals(admin_client(inputs.reader.connection), result, with_permissions=False)
    return attrs.evolve(result, problems=(*result.problems, *refused))


def _policies(files: Sequence[Path]) -> "tuple[Policy, ...]":
    if not files:
        return ()
    from infra.cli.policies import read_policies  # noqa: PLC0415 - same

    return read_policies(files)


def _print(result: "Plan") -> None:
    from rich.console import Console  # noqa: PLC0415 - imported after the slow part

    from infra.report.plan_text import plan_rich  # noqa: PLC0415 - same

    Console(highlight=False, soft_wrap=True).print(plan_rich(result))


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
