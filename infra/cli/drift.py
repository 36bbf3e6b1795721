"""`headwater drift`: is the cluster still as declared?"""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit, json_text, print_problems, write
from infra.cli.exit_codes import ExitCode
from infra.cli.options import cluster_options, files_argument, output_option, project_option
from infra.model.problems import Problem, ProblemsError, errors
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import KafkaClusterReader

if TYPE_CHECKING:
    from infra.planner.drift import Drift

_FORMATS = ("text", "json", "markdown", "html", "junit")


@click.command()
@files_argument
@cluster_options
@click.option(
    "--stack",
    metavar="STACK",
    help="Read the recorded set-ups and the switches from this Pulumi stack: lost topics are then told from "
    "new ones.",
)
@project_option
@click.option(
    "--stack-state",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Read the set-ups from what `pulumi stack export` wrote instead; - is standard input.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def drift(
    context: click.Context,
    files: Sequence[Path],
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    stack: str | None,
    project: Path,
    stack_state: Path | None,
    form: str,
    output: Path | None,
) -> None:
    """Tell whether a cluster still is as declared.

    Documents, the cluster and, if named, the recorded set-ups are compared; nothing is changed. Exit code 0:
    no drift, 2: drift, 3: the plan has other errors, so that not everything was compared, 1: could not look.

    \b
    Examples:
      headwater drift topologies/ --bootstrap-server localhost:9092
      headwater drift topologies/ --command-config client.properties --stack production
      headwater drift topologies/ --stack-state state.json --format html --output drift.html
    """
    if stack is not None and stack_state is not None:
        raise click.UsageError("--stack and --stack-state both name the recorded set-ups: give one of them.")
    try:
        loaded, reader = cluster.opened(files, bootstrap_server, command_config)
        told = _told(loaded.documents, stack, project, stack_state)
        found = _drift(told, reader)
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    print_problems((*loaded.problems, *(each for each in told.problems if each not in found.problems)))
    if form == "text" and output is None and sys.stdout.isatty():
        _print(found)
    else:
        write(_rendered(form, found), output)
    context.exit(_exit_code(found))


@attrs.frozen
class _Told:
    """What is compared with the cluster: a stack changes documents by its switches."""

    documents: Sequence[TopologyDocument]
    records: Mapping[str, SetupRecord] | None = None
    problems: tuple[Problem, ...] = ()


def _told(
    documents: Sequence[TopologyDocument], stack: str | None, project: Path, stack_state: Path | None
) -> _Told:
    if stack is None and stack_state is None:
        return _Told(documents)
    # They load a lot.
    from infra.apply.setup_switches import switched  # noqa: PLC0415
    from infra.cli.stack import configured, exported_setups, recorded_setups  # noqa: PLC0415

    if stack_state is not None:
        text = sys.stdin.read() if str(stack_state) == "-" else _text(stack_state)
        return _Told(documents, exported_setups(text, str(stack_state)))
    config = configured(str(stack), project)
    switched_documents = switched(documents, config, are_all=False)
    return _Told(switched_documents, recorded_setups(str(stack), project), tuple(config.problems))


def _drift(told: _Told, reader: KafkaClusterReader) -> "Drift":
    compiled, snapshot = cluster.compiled(told.documents, told.records or {}, reader)
    from infra.planner.drift import find_drift  # noqa: PLC0415 - loads a lot, too

    found = find_drift(compiled, snapshot, told.records)
    return attrs.evolve(found, problems=(*errors(told.problems), *found.problems))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise click.BadParameter(f"{path} cannot be read: {reason}.", param_hint="--stack-state") from None


def _exit_code(found: "Drift") -> ExitCode:
    if found.problems:
        return ExitCode.REFUSED
    return ExitCode.DONE if found.is_clean else ExitCode.DRIFT


def _print(found: "Drift") -> None:
    from rich.console import Console  # noqa: PLC0415 - each form loads what it needs

    from infra.report.drift.text import drift_rich  # noqa: PLC0415

    Console(highlight=False, soft_wrap=True).print(drift_rich(found))


def _rendered(form: str, found: "Drift") -> str:
    # Each form loads what it needs and no more.
    match form:
        case "json":
            from infra.report.drift.to_json import drift_json  # noqa: PLC0415

            return json_text(drift_json(found))
        case "markdown":
            from infra.report.drift.markdown import drift_markdown  # noqa: PLC0415

            return drift_markdown(found)
        case "html":
            from infra.report.drift.page import drift_page  # noqa: PLC0415

            return drift_page(found, datetime.now(UTC))
        case "junit":
            from infra.report.drift.junit import drift_junit  # noqa: PLC0415

            return drift_junit(found)
        case _:
            from infra.report.drift.text import drift_text  # noqa: PLC0415

            return f"{drift_text(found)}\n"
