"""`headwater acls`: which rights do applications need, and which does Headwater?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit, exit_for, json_text, print_problems, write
from infra.cli.options import cluster_options, output_option
from infra.compiler import compile_documents
from infra.model.acls import ANY_NAME, AclDeclaration
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemCode, ProblemsError, errors
from infra.model.topology import TopologyDocument
from infra.observe.command_line import named_connection
from infra.planner.acls import Purpose, application_needs, headwater_needs, incomplete_needs
from infra.report.acls import Grants
from infra.spec import Documents, load_documents

_FORMATS = ("text", "json", "commands")
_OF_COUNTS = {ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS}


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILES...]")
@click.option("--self", "of_headwater", is_flag=True, help="The rights that Headwater itself needs.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([purpose.value for purpose in Purpose]),
    default=Purpose.UP.value,
    show_default=True,
    help="With --self: to read (plan, drift, preview); for `pulumi up`; to delete topics; the agent.",
)
@click.option(
    "--principal",
    "principals",
    multiple=True,
    metavar="TYPE:NAME",
    help="Who gets the rights, such as User:orders; instead of what documents declare. May be repeated.",
)
@cluster_options
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def acls(
    context: click.Context,
    files: Sequence[Path],
    *,
    of_headwater: bool,
    purpose: str,
    principals: Sequence[str],
    bootstrap_server: str | None,
    command_config: Path | None,
    form: str,
    output: Path | None,
) -> None:
    """Show the least rights that applications need, or Headwater itself.

    An application needs no right to create topics once its internal topics exist. Nothing is granted here:
    `pulumi up` does it for documents with `acls`, an administrator with the printed commands for others.
    A cluster need only be named for sources by pattern. With --self and no FILES the rights are on all.

    \b
    Examples:
      headwater acls topologies/
      headwater acls orders.yaml --principal User:orders --format commands > grant.sh
      headwater acls topologies/ --self --for plan --principal User:headwater
    """
    if not files and not of_headwater:
        raise click.UsageError("Name FILES, or ask for the rights of Headwater itself by --self.")
    loaded = load_documents(files) if files else Documents()
    try:
        counts = _counts(loaded.documents, bootstrap_server, command_config)
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    compiled = compile_documents(loaded.documents, counts)
    if of_headwater:
        grants = [_of_headwater(Purpose(purpose), compiled, principals)]
    else:
        grants = [_of_application(application, principals) for application in compiled]
    problems = (*loaded.problems, *_problems(compiled, of_headwater=of_headwater))
    if form == "commands" and (open_ := [part.holder for part in grants if not part.principals]):
        raise click.UsageError(f"Nobody is named to get the rights of {', '.join(open_)}: use --principal.")
    write(_rendered(form, grants, problems, bootstrap_server), output)
    if form != "json":
        print_problems(problems)
    context.exit(exit_for(problems))


def _counts(
    documents: Sequence[TopologyDocument], bootstrap_server: str | None, command_config: Path | None
) -> Mapping[str, int]:
    connection = named_connection(bootstrap_server, command_config)
    return cluster.read(documents, {}, connection).partitions if connection else {}


def _of_application(compiled: CompiledApplication, principals: Sequence[str]) -> Grants:
    declared = compiled.application.acls
    return Grants(
        holder=compiled.application.id,
        purpose="to run",
        principals=tuple(principals) or (declared.principals if declared else ()),
        hosts=declared.hosts if declared else (ANY_NAME,),
        needs=application_needs(compiled, declared),
    )


def _of_headwater(
    purpose: Purpose, compiled: Sequence[CompiledApplication], principals: Sequence[str]
) -> Grants:
    needs = headwater_needs(purpose, compiled)
    return Grants("Headwater", _PURPOSES[purpose], tuple(principals), (ANY_NAME,), needs)


_PURPOSES = {
    Purpose.PLAN: "to plan, to preview and to find drift",
    Purpose.UP: "to run `pulumi up`",
    Purpose.RETIRE: "to run `pulumi up` and delete the topics of retired applications",
    Purpose.AGENT: "to run the agent",
}


def _problems(compiled: Sequence[CompiledApplication], *, of_headwater: bool) -> Iterator[Problem]:
    """Errors that keep the list from being right, and what it cannot hold; counts do not matter here."""
    for application in compiled:
        yield from (found for found in errors(application.problems) if found.code not in _OF_COUNTS)
        if not of_headwater:
            declared = application.application.acls
            yield from incomplete_needs(
                application, declared or AclDeclaration((), application.application.at)
            )


def _rendered(
    form: str, grants: Sequence[Grants], problems: Sequence[Problem], bootstrap_server: str | None
) -> str:
    # Each form loads what it needs and no more.
    match form:
        case "json":
            from infra.report.acls.to_json import acls_json  # noqa: PLC0415

            return json_text(acls_json(grants, problems))
        case "commands":
            from infra.report.acls.commands import acls_commands  # noqa: PLC0415

            return acls_commands(grants, bootstrap_server or "BROKER")
        case _:
            from infra.report.acls.text import acls_text  # noqa: PLC0415

            return f"{acls_text(grants)}\n"
