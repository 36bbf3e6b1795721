"""`headwater plan`: the plan for a cluster, without Pulumi."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit, exit_for, print_problems
from infra.cli.exit_codes import ExitCode
from infra.cli.options import cluster_options, files_argument, policies_option, project_option
from infra.model.problems import Problem, ProblemsError
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
    help="Read the recorded set-ups and the limits and switches from this Pulumi stack; without it nothing "
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
        told = _told(stack, project, loaded.documents)
        made = _plan(told, reader, policies)
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    _print(made)
    print_problems((*loaded.problems, *told.problems, *made.problems))
    context.exit(exit_for((*told.problems, *made.problems), ExitCode.REFUSED))


@attrs.frozen
class _Told:
    """What a plan is made of beside the cluster: a stack changes documents by its switches."""

    documents: Sequence[TopologyDocument]
    records: Mapping[str, SetupRecord] = attrs.field(factory=dict)
    policies: "tuple[Policy, ...]" = ()
    cluster_id: str | None = None
    problems: tuple[Problem, ...] = ()


def _told(stack: str | None, project: Path, documents: Sequence[TopologyDocument]) -> _Told:
    if stack is None:
        return _Told(documents)
    # They need Pulumi's toolchain.
    from infra.apply.settings import plan_policy  # noqa: PLC0415
    from infra.apply.setup_switches import switched  # noqa: PLC0415
    from infra.cli.stack import configured, recorded_setups  # noqa: PLC0415

    config = configured(stack, project)
    policy, problems = plan_policy(config, project)
    switched_documents = switched(documents, config, are_all=False)
    return _Told(
        switched_documents,
        recorded_setups(stack, project),
        policy.policies,
        policy.cluster_id,
        (*config.problems, *problems),
    )


def _plan(told: _Told, reader: KafkaClusterReader, policies: "tuple[Policy, ...]") -> "Plan":
    start_ms = _milliseconds()
    compiled, snapshot = cluster.compiled(told.documents, told.records, reader)
    from infra import planner  # noqa: PLC0415 - likewise

    limits = planner.PlanPolicy(cluster_id=told.cluster_id, policies=(*told.policies, *policies))
    return planner.plan(compiled, snapshot, told.records, limits, _milliseconds() - start_ms)


def _policies(files: Sequence[Path]) -> "tuple[Policy, ...]":
    if not files:
        return ()
    from infra.cli.policies import read_policies  # noqa: PLC0415 - likewise

    return read_policies(files)


def _print(made: "Plan") -> None:
    from rich.console import Console  # noqa: PLC0415 - after the slow part

    from infra.report.plan_text import plan_rich  # noqa: PLC0415 - likewise

    Console(highlight=False, soft_wrap=True).print(plan_rich(made))


def _milliseconds() -> int:
    return time.monotonic_ns() // 1_000_000
