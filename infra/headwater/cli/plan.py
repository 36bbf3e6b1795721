"""`headwater plan`: print the plan for a cluster, without Pulumi."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from headwater.cli.console import (
    ExitCode,
    exit_for,
    json_text,
    print_problems,
    print_rich,
    show_activity,
    write_text,
)
from headwater.cli.options import (
    output_option,
    policies_option,
    project_option,
    read_policies,
    stack_cluster_options,
    stack_files_argument,
    stack_state_option,
)
from headwater.cli.stack_context import StackContext, StackOptions, load_context, note_missing_documents
from headwater.kafka.command_line import NamedCluster

if TYPE_CHECKING:
    from headwater.model.policies import Policy
    from headwater.planner import Plan

_FORMATS = ("text", "json")


@click.command()
@stack_files_argument
@stack_cluster_options
@click.option(
    "--stack",
    metavar="STACK",
    help="Read setup records, limits and setup options of this Pulumi stack. Without it, no application "
    "counts as set up.",
)
@project_option
@stack_state_option
@policies_option
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def plan(
    context: click.Context,
    files: Sequence[Path],
    *,
    cluster: NamedCluster,
    stack: str | None,
    project: Path,
    stack_state: Path | None,
    policy_files: Sequence[Path],
    form: str,
    output: Path | None,
) -> None:
    """Show what `pulumi up` would do to a cluster.

    Prints the same plan as a preview, without running the program of a stack and without changing anything.
    With --stack, FILES are all documents of the stack, by default those in its settings: its other
    applications count as removed. With --stack-state, Pulumi is not run at all. The JSON has all values of
    the plan and their digest: `pulumi up` with HEADWATER_APPROVED_PLAN=FILE makes exactly this plan, or none.
    Exit code 3: the plan is refused; 1: it could not be made.

    \b
    Examples:
      headwater plan topologies/ --bootstrap-server localhost:9092
      headwater plan --stack production
      headwater plan topologies/ --command-config client.properties --stack production
      headwater plan topologies/ --bootstrap-server localhost:9092 --policies headwater-policies.yaml
      headwater plan topologies/ --stack production --stack-state records.json --format json -o plan.json
    """
    policies = read_policies(policy_files)
    inputs = load_context(files, cluster, StackOptions(name=stack, project=project, state=stack_state))
    with show_activity("Reading the cluster, and planning"):
        result = _validate_plan(inputs, _make_plan(inputs, policies))
    if form == "json":
        from headwater.report.plan_json import plan_json  # noqa: PLC0415 - only for this format

        write_text(json_text(plan_json(result, inputs.stack.name if inputs.stack else "")), output)
    elif output is not None:
        from headwater.report.plan_text import plan_text  # noqa: PLC0415 - imported after the slow part

        write_text(f"{plan_text(result)}\n", output)
    else:
        from headwater.report.plan_text import plan_rich  # noqa: PLC0415 - imported after the slow part

        print_rich(plan_rich(result))
    print_problems((*inputs.document_problems, *inputs.stack_problems, *result.problems), after_result=True)
    note_missing_documents(files, result.problems)
    context.exit(exit_for((*inputs.stack_problems, *result.problems), ExitCode.REFUSED))


def _make_plan(inputs: StackContext, policies: "tuple[Policy, ...]") -> "Plan":
    start_ms = _now_ms()
    observed = inputs.observe_cluster(_import_planner)
    from headwater.operations.planning import plan_documents  # noqa: PLC0415 - see `_import_planner`
    from headwater.planner import PlanPolicy  # noqa: PLC0415 - see `_import_planner`

    limits = PlanPolicy(
        cluster_id=inputs.cluster_id,
        policies=(*inputs.policies, *policies),
        stack=inputs.stack,
        configures_records=inputs.configures_records,
    )
    return _with_other_resources(inputs, plan_documents(observed, limits, _now_ms() - start_ms))


def _with_other_resources(inputs: StackContext, result: "Plan") -> "Plan":
    """Return the plan with the resources in the state that Headwater has not registered, as problems."""
    if inputs.state is None or not inputs.state.others:
        return result
    from headwater.pulumi.planning import other_resources  # noqa: PLC0415 - only if there are some

    found = other_resources(inputs.state.others, result, is_only_program=inputs.is_only_program)
    return attrs.evolve(result, problems=(*result.problems, *found))


def _import_planner() -> None:
    import headwater.operations.planning  # noqa: PLC0415 - while the cluster answers
    import headwater.report.plan_text  # noqa: F401, PLC0415 - while the cluster answers


def _validate_plan(inputs: StackContext, result: "Plan") -> "Plan":
    """Return the plan with what the brokers refuse of it; they validate it without executing it."""
    if not (result.is_applicable and any(action.is_change for action in result.actions)):
        return result
    from headwater.operations.validation import find_refusals  # noqa: PLC0415 - after the requests are sent

    refused = find_refusals(inputs.reader.connection, result, with_permissions=False)
    return attrs.evolve(result, problems=(*result.problems, *refused))


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
