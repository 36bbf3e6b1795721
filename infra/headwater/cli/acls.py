"""`headwater acls`: show the ACLs that applications or Headwater require."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from headwater.cli.console import exit_for, json_text, print_problems, write_text
from headwater.cli.inputs import NEED_A_CLUSTER, read_counts
from headwater.cli.options import Principal, cluster_options, output_option
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster, NamedPath
from headwater.model.acls import ANY_NAME, AclDeclaration
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, errors
from headwater.planner.acls import Purpose, application_needs, headwater_needs, incomplete_needs
from headwater.report.acls import Grants, Target, acls_commands, acls_json, acls_text
from headwater.spec import Documents, load_documents

_FORMATS = ("text", "json", "commands")


@click.command()
@click.argument("files", nargs=-1, type=NamedPath(path_type=Path), metavar="[FILES...]")
@click.option("--self", "for_headwater", is_flag=True, help="Show the permissions that Headwater requires.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([purpose.value for purpose in Purpose]),
    default=Purpose.UP.value,
    show_default=True,
    help="With --self, the use: plan (plan, drift, preview), up (`pulumi up`), retire (deletion of topics), "
    "agent, or reshard (reshard, state copy).",
)
@click.option(
    "--principal",
    "principals",
    multiple=True,
    type=Principal(),
    help="The principal to grant to, such as User:orders, instead of those in documents. May be repeated.",
)
@cluster_options
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def acls(
    context: click.Context,
    files: Sequence[Path],
    *,
    for_headwater: bool,
    purpose: str,
    principals: Sequence[str],
    cluster: NamedCluster,
    form: str,
    output: Path | None,
) -> None:
    """Show the ACLs that applications or Headwater require.

    These are the least privileges. An application needs no permission to create topics if its internal topics
    exist. This command grants nothing: `pulumi up` does so for documents with `acls`; for others an
    administrator runs the printed commands. A cluster is required only for source patterns. With --self and
    no FILES, the permissions are for all names.

    \b
    Examples:
      headwater acls topologies/
      headwater acls orders.yaml --principal User:orders --format commands > grant.sh
      headwater acls topologies/ --self --for plan --principal User:headwater
    """
    if not files and not for_headwater:
        raise click.UsageError("FILES or --self is required.")
    if not for_headwater and context.get_parameter_source("purpose") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--for needs --self: without it, the permissions of the applications are shown."
        )
    loaded = load_documents(files) if files else Documents()
    counts = read_counts(loaded.documents, cluster) if loaded.documents else {}
    compiled = compile_documents(loaded.documents, counts)
    if for_headwater:
        grants = [_headwater_grants(Purpose(purpose), compiled, principals)]
    else:
        grants = [_application_grants(application, principals) for application in compiled]
    problems = (*loaded.problems, *_find_problems(compiled, for_headwater=for_headwater))
    if form == "commands" and (without_principal := [part.holder for part in grants if not part.principals]):
        raise click.UsageError(
            f"No principal for the permissions of {', '.join(without_principal)}: use --principal."
        )
    write_text(_render_acls(form, grants, problems, _find_target(cluster)), output)
    if form != "json":
        print_problems(problems)
    context.exit(exit_for(problems))


def _find_target(cluster: NamedCluster) -> Target:
    """Return what `kafka-acls.sh` is called with: without a server, it is read from the properties file."""
    if cluster.command_config is None:
        return Target(cluster.bootstrap_server)
    named = cluster.named_connection()
    servers = ",".join(named.bootstrap_servers) if named is not None else None
    return Target(servers, str(cluster.command_config))


def _application_grants(compiled: CompiledApplication, principals: Sequence[str]) -> Grants:
    declared = compiled.application.acls
    return Grants(
        holder=compiled.application.id,
        purpose="to run",
        principals=tuple(principals) or (declared.principals if declared else ()),
        hosts=declared.hosts if declared else (ANY_NAME,),
        needs=application_needs(compiled, declared),
    )


def _headwater_grants(
    purpose: Purpose, compiled: Sequence[CompiledApplication], principals: Sequence[str]
) -> Grants:
    needs = headwater_needs(purpose, compiled)
    return Grants("Headwater", _PURPOSES[purpose], tuple(principals), (ANY_NAME,), needs)


_PURPOSES = {
    Purpose.PLAN: "to plan, preview and check for drift",
    Purpose.UP: "to run `pulumi up`",
    Purpose.RETIRE: "to run `pulumi up` and delete the topics of retired applications",
    Purpose.AGENT: "to run the agent",
    Purpose.RESHARD: "to move state (`headwater reshard`, `headwater state copy`)",
}


def _find_problems(compiled: Sequence[CompiledApplication], *, for_headwater: bool) -> Iterator[Problem]:
    """Yield errors that make the list wrong, and permissions that it omits; ignore missing counts."""
    for application in compiled:
        yield from (found for found in errors(application.problems) if found.code not in NEED_A_CLUSTER)
        if not for_headwater:
            declared = application.application.acls
            yield from incomplete_needs(
                application, declared or AclDeclaration((), application.application.at)
            )


def _render_acls(form: str, grants: Sequence[Grants], problems: Sequence[Problem], target: Target) -> str:
    match form:
        case "json":
            return json_text(acls_json(grants, problems))
        case "commands":
            return acls_commands(grants, target)
        case _:
            return f"{acls_text(grants)}\n" if grants else ""
