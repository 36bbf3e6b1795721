"""`headwater import`: documents from running applications."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from click.core import ParameterSource

from infra.cli import cluster
from infra.cli.console import ProblemsExit, exit_for, print_problems, write
from infra.cli.exit_codes import ExitCode
from infra.cli.import_all import Order, import_all
from infra.cli.imported import Imported, store_options, told_of_group
from infra.cli.options import Count, Setting, StoreDetails, cluster_options
from infra.compiler import compile_documents
from infra.compiler.described import complete_from_cluster
from infra.describe import read_descriptions, write_description
from infra.model.cluster import ClusterSnapshot
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem, ProblemCode, ProblemsError, errors
from infra.model.topology import TopologyDocument
from infra.observe import Connection
from infra.observe.command_line import named_connection
from infra.spec import load_text

_NEED_A_CLUSTER = {ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS}


@click.command("import")
@click.option("--all", "everything", is_flag=True, help="Import every application that the cluster shows.")
@click.option(
    "--describe",
    "description",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="The text that Topology#describe() printed, also with log lines around it; - is standard input.",
)
@click.option(
    "--application-id",
    "ids",
    multiple=True,
    metavar="ID",
    help="The application.id of the application. With --all, one whose group is gone; may be repeated.",
)
@click.option("--topology", metavar="NAME", help="Which one, if the text describes several named topologies.")
@click.option(
    "--repartition", "repartitions", multiple=True, type=Count(), help="An explicit count, by topic."
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    type=StoreDetails(),
    help="What the text does not say about a store: its kind, then retention=, logging=false, "
    "retainDuplicates=true, sourceTopic= or overrides.KEY=.",
)
@click.option(
    "--config", "config", multiple=True, type=Setting(), help="A config of the application, KEY=VALUE."
)
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True, path_type=Path),
    help="Write to this file, with --all into this folder, instead of standard output.",
)
@click.option(
    "--topic",
    "vouched",
    multiple=True,
    metavar="NAME",
    help="With --all: an internal topic that Kafka Streams made before 2.5; may be repeated.",
)
@click.option("--force", is_flag=True, help="With --all: overwrite files that exist.")
@click.pass_context
def import_(
    context: click.Context,
    *,
    everything: bool,
    description: Path | None,
    ids: Sequence[str],
    topology: str | None,
    repartitions: Sequence[tuple[str, int]],
    stores: Sequence[tuple[str, Mapping[str, Any]]],
    config: Sequence[tuple[str, str]],
    bootstrap_server: str | None,
    command_config: Path | None,
    output: Path | None,
    vouched: Sequence[str],
    force: bool,
) -> None:
    """Create documents from running applications.

    The text of `Topology#describe()` does not say everything: explicit partition counts, retention of
    windowed stores, stores without changelog. What is missing and needed is asked for by name (exit code 1,
    and noted in the document), or read from the live topics of the application when a cluster is named. The
    state of its group there is noted in the document, and the group's protocol declared.

    With --all no text is needed: applications are found by their groups and the names of their internal
    topics. What a cluster does not show, the topology, stays an open question in each document; until it is
    answered partition counts stay as they are. Nothing is changed on the cluster, and no file is overwritten
    unless --force says so.

    \b
    Examples:
      headwater import --all --bootstrap-server kafka:9092 -o topologies/
      headwater import --describe app.txt --application-id orders --bootstrap-server kafka:9092 -o app.yaml
      headwater import --describe app.txt --application-id orders --store counts=window,retention=1d
      kubectl logs orders-0 | headwater import --describe - --application-id orders -o app.yaml
    """
    if everything:
        _refuse("--all", "--describe", "--topology", "--repartition", "--store", context=context)
        context.exit(
            _all(
                Order(
                    bootstrap_server=bootstrap_server,
                    command_config=command_config,
                    named=ids,
                    vouched=vouched,
                    config=dict(config),
                    folder=None if output is None or str(output) == "-" else output,
                    force=force,
                )
            )
        )
    if description is None or len(ids) != 1:
        raise click.UsageError("Name a text by --describe and its --application-id, or --all.")
    _refuse("--describe", "--force", "--topic", context=context)
    if output is not None and output.is_dir():
        raise click.BadParameter(f"File '{output}' is a directory.", param_hint="--output")
    (application_id,) = ids
    nodes, problems = _chosen(
        read_descriptions(_read(description), "" if _is_stdin(description) else str(description)), topology
    )
    if not errors(problems):
        imported = Imported(
            application_id=application_id,
            text=write_description(nodes),
            config=dict(config),
            repartitions=dict(repartitions),
            stores=dict(stores),
        )
        problems = (*problems, *_written(imported, bootstrap_server, command_config, output))
    print_problems(problems)
    context.exit(exit_for(problems))


def _all(order: Order) -> ExitCode:
    if order.folder is not None and order.folder.exists() and not order.folder.is_dir():
        raise click.BadParameter(f"'{order.folder}' is a file; --all writes a folder.", param_hint="--output")
    try:
        return ExitCode.DONE if import_all(order) else ExitCode.PROBLEMS
    except ProblemsError as error:
        raise ProblemsExit(error) from None


def _refuse(beside: str, *options: str, context: click.Context) -> None:
    """Refuse options that mean nothing beside another one."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and set(parameter.opts) & set(options):
            raise click.UsageError(f"{parameter.opts[0]} means nothing beside {beside}.")


def _written(
    imported: Imported, bootstrap_server: str | None, command_config: Path | None, output: Path | None
) -> tuple[Problem, ...]:
    """Write the document, its open questions noted, unless anything else is wrong; return what is."""
    try:
        connection = named_connection(bootstrap_server, command_config)
        imported, found = _completed(imported, connection, str(output or "document"))
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    if all(problem.code is ProblemCode.MISSING_DETAIL for problem in errors(found)):
        write(imported.document(_questions(found)), output)
    return found


def _is_stdin(description: Path) -> bool:
    return str(description) == "-"


def _read(description: Path) -> str:
    """Return the text; what is not UTF-8 lies in the log lines around it."""
    try:
        content = sys.stdin.buffer.read() if _is_stdin(description) else description.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{description} cannot be read: {error.strerror}.") from None
    return content.decode("utf-8", errors="replace")


def _chosen(
    described: Sequence[tuple[NodeTopology, tuple[Problem, ...]]], name: str | None
) -> tuple[NodeTopology, tuple[Problem, ...]]:
    """Return the topology of that name; a text that describes one topology several times has one."""
    distinct = {nodes.name: (nodes, problems) for nodes, problems in described}
    if name is None and len(distinct) == 1:
        return described[-1]
    if name in distinct:
        return distinct[name]
    names = ", ".join(sorted(each for each in distinct if each is not None)) or "one without a name"
    if name is None:
        raise click.UsageError(f"The text describes several topologies: {names}. Choose one by --topology.")
    raise click.UsageError(f"The text describes no topology {name}, but {names}.")


def _completed(
    imported: Imported, connection: Connection | None, file: str
) -> tuple[Imported, tuple[Problem, ...]]:
    """Fill in what the live topics tell; return what is still wrong or missing. Raises `ProblemsError`."""
    loaded = load_text(imported.document(), file)
    if not loaded.documents:
        return imported, loaded.problems
    counts: Mapping[str, int] = {}
    if connection is not None:
        snapshot = cluster.read(loaded.documents, {}, connection, protocol_is_known=False)
        imported = _filled(imported, loaded.documents[0], snapshot)
        loaded, counts = load_text(imported.document(), file), snapshot.partitions
    compiled = compile_documents(loaded.documents, counts)
    problems = (*loaded.problems, *(problem for each in compiled for problem in each.problems))
    return imported, tuple(p for p in problems if connection or p.code not in _NEED_A_CLUSTER)


def _filled(imported: Imported, document: TopologyDocument, snapshot: ClusterSnapshot) -> Imported:
    if document.described is None:
        return imported
    described = complete_from_cluster(document.described, document.application, snapshot)
    group = snapshot.groups.get(imported.application_id)
    return attrs.evolve(
        imported,
        uses_streams_protocol=group is not None and group.members is None,
        observed=told_of_group(imported.application_id, snapshot),
        repartitions=described.repartition_partitions,
        stores={name: store_options(detail) for name, detail in described.stores.items()},
        copartitioned=described.copartitioned,
    )


def _questions(problems: Sequence[Problem]) -> list[str]:
    return [
        f"{problem.summary} {problem.fix}"
        for problem in errors(problems)
        if problem.code is ProblemCode.MISSING_DETAIL
    ]
