"""`headwater drift`: report the differences between documents and a cluster."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from headwater.cli.console import ExitCode, json_text, print_problems, print_rich, show_activity, write_text
from headwater.cli.options import (
    output_option,
    project_option,
    read_policies,
    stack_cluster_options,
    stack_files_argument,
    stack_state_option,
)
from headwater.cli.stack_context import StackContext, StackOptions, load_context, note_missing_documents
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import errors

if TYPE_CHECKING:
    from headwater.model.policies import Policy
    from headwater.operations.observation import Questions
    from headwater.planner.drift import Drift

_FORMATS = ("text", "json", "markdown", "html", "junit")


@click.command()
@stack_files_argument
@stack_cluster_options
@click.option(
    "--stack",
    metavar="STACK",
    help="Read setup records and setup options of this Pulumi stack, to distinguish lost topics from new "
    "ones.",
)
@project_option
@stack_state_option
@click.option(
    "--policies",
    "policy_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Tolerate the drift that this policy file names (`drift`). May be repeated.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def drift(
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
    """Report the differences between documents and a cluster.

    Compares documents, the cluster and, if a stack is named, its setup records. With --stack, FILES are all
    documents of the stack, by default those in its settings: its other applications count as removed. Changes
    nothing. Exit code 0: no drift, or only drift that a policy tolerates; 1: documents or cluster could not
    be read; 2: drift; 3: the plan has other errors, so the comparison is not complete.

    \b
    Examples:
      headwater drift topologies/ --bootstrap-server localhost:9092
      headwater drift --stack production
      headwater drift topologies/ --command-config client.properties --stack production
      headwater drift topologies/ --stack-state state.json --format html --output drift.html
      headwater drift topologies/ --bootstrap-server localhost:9092 --policies headwater-policies.yaml
    """
    options = StackOptions(name=stack, project=project, state=stack_state)
    policies = read_policies(policy_files)
    inputs = load_context(files, cluster, options)
    with show_activity("Reading the cluster, and comparing"):
        found = _compare_cluster(inputs, policies)
    others = (problem for problem in inputs.stack_problems if problem not in found.problems)
    print_problems((*inputs.document_problems, *others))
    if form == "text" and output is None and sys.stdout.isatty():
        from headwater.report.drift.texts import drift_rich  # noqa: PLC0415 - see `_import_comparison`

        print_rich(drift_rich(found))
    else:
        write_text(_render_drift(form, found), output)
    note_missing_documents(files, found.problems)
    context.exit(_exit_code(found))


def _compare_cluster(inputs: StackContext, policies: "tuple[Policy, ...]") -> "Drift":
    observed = inputs.observe_cluster(_import_comparison, with_topologies=True)
    from headwater.planner.drift import find_drift  # noqa: PLC0415 - see `_import_comparison`
    from headwater.planner.upgrade import compile_recorded  # noqa: PLC0415 - see `_import_comparison`

    earlier = compile_recorded(inputs.documents, inputs.records or {}, observed.snapshot.partitions)
    found = find_drift(
        observed.compiled,
        observed.snapshot,
        inputs.records,
        inputs.stack,
        inputs.cluster_id,
        earlier=earlier,
        policies=(*inputs.policies, *policies),
    )
    return attrs.evolve(found, problems=(*errors(inputs.stack_problems), *found.problems))


def _import_comparison() -> "Questions":
    import headwater.report.drift.texts  # noqa: F401, PLC0415 - while the cluster answers
    from headwater.planner.drift import drift_evidence_request  # noqa: PLC0415 - while the cluster answers

    return drift_evidence_request


def _exit_code(found: "Drift") -> ExitCode:
    if found.problems:
        return ExitCode.REFUSED
    return ExitCode.DONE if found.is_clean else ExitCode.DRIFT


def _render_drift(form: str, found: "Drift") -> str:
    # Each format imports only what it needs.
    match form:
        case "json":
            from headwater.report.drift.texts import drift_json  # noqa: PLC0415

            return json_text(drift_json(found))
        case "markdown":
            from headwater.report.drift.texts import drift_markdown  # noqa: PLC0415

            return drift_markdown(found)
        case "html":
            from headwater.report.drift.pages import drift_page  # noqa: PLC0415

            return drift_page(found, datetime.now(UTC))
        case "junit":
            from headwater.report.drift.pages import drift_junit  # noqa: PLC0415

            return drift_junit(found)
        case _:
            from headwater.report.drift.texts import drift_text  # noqa: PLC0415

            return f"{drift_text(found)}\n"
