"""`headwater import`: create documents from running applications."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from click.core import ParameterSource

from infra.cli.cluster import read_snapshot
from infra.cli.console import ProblemsExit, exit_for, print_problems, write
from infra.cli.exit_codes import ExitCode
from infra.cli.import_all import ImportRequest, import_all
from infra.cli.imported_documents import DescribedApplication, group_sentence, store_options
from infra.cli.options import Count, Setting, StoreDetails, Version, cluster_options
from infra.compiler import compile_documents
from infra.compiler.described import complete_from_cluster
from infra.describe import read_description, write_description
from infra.model.cluster import ClusterSnapshot
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem, ProblemCode, ProblemsError, errors
from infra.model.topology import TopologyDocument
from infra.model.versions import DEFAULT_VERSION, KafkaStreamsVersion, known_version, logged_version
from infra.observe import Connection
from infra.observe.command_line import named_connection
from infra.spec import load_text
from infra.spec.topic_configs import is_valid

_NEED_A_CLUSTER = {ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS}


@click.command("import")
@click.option("--all", "everything", is_flag=True, help="Import all applications of the cluster.")
@click.option(
    "--describe",
    "description",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="The output of Topology#describe(), with or without other log lines; - is standard input.",
)
@click.option(
    "--application-id",
    "ids",
    multiple=True,
    metavar="ID",
    help="The application.id. With --all, the id of an application without a group; may be repeated.",
)
@click.option(
    "--topology",
    metavar="NAME|NUMBER",
    help="The topology, if the text describes several different ones: its name, or its number in the text.",
)
@click.option(
    "--repartition",
    "repartitions",
    multiple=True,
    type=Count(),
    help="The explicit partition count of a repartition topic.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    type=StoreDetails(),
    help="Details of a store that the text does not have: its kind, then retention=, logging=false, "
    "retainDuplicates=true, sourceTopic= or overrides.KEY=.",
)
@click.option(
    "--config", "config", multiple=True, type=Setting(), help="A config of the application, KEY=VALUE."
)
@click.option(
    "--kafka-streams",
    type=Version(),
    help="The version of Kafka Streams that the application runs. Default: that of the log, if the text "
    f"is in a log, otherwise {DEFAULT_VERSION.release}.",
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
    "topics",
    multiple=True,
    metavar="NAME",
    help="With --all: an internal topic that Kafka Streams created before version 2.5; may be repeated.",
)
@click.option("--force", is_flag=True, help="With --all: overwrite existing files.")
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
    kafka_streams: KafkaStreamsVersion | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    output: Path | None,
    topics: Sequence[str],
    force: bool,
) -> None:
    """Create documents from running applications.

    The text of `Topology#describe()` does not have all details: explicit partition counts, the retention of
    windowed stores, and stores without a changelog are missing. With a cluster, they are read from the topics
    of the application; the document then also has the state and the protocol of its group. Without a cluster,
    each detail that is required and missing is an error, and a comment in the document (exit code 1).

    With --all, no text is required: applications are found by their groups and the names of their internal
    topics. A cluster does not show the topology, so each document lists it as missing, and partition counts
    do not change until you add it. The cluster is not changed. Files are overwritten only with --force.

    \b
    Examples:
      headwater import --all --bootstrap-server kafka:9092 -o topologies/
      headwater import --describe app.txt --application-id orders --bootstrap-server kafka:9092 -o app.yaml
      headwater import --describe app.txt --application-id orders --store counts=window,retention=1d
      kubectl logs orders-0 | headwater import --describe - --application-id orders -o app.yaml
    """
    if everything:
        _refuse_options("--all", "--describe", "--topology", "--repartition", "--store", context=context)
        context.exit(
            _import_all(
                ImportRequest(
                    bootstrap_server=bootstrap_server,
                    command_config=command_config,
                    application_ids=ids,
                    internal_topics=topics,
                    config=dict(config),
                    kafka_streams=kafka_streams,
                    folder=None if output is None or str(output) == "-" else output,
                    force=force,
                )
            )
        )
    if description is None or len(ids) != 1:
        raise click.UsageError("--describe and --application-id, or --all, are required.")
    _refuse_options("--describe", "--force", "--topic", context=context)
    if output is not None and output.is_dir():
        raise click.BadParameter(f"File '{output}' is a directory.", param_hint="--output")
    (application_id,) = ids
    text = _read_description(description)
    file = "standard input" if _is_stdin(description) else str(description)
    nodes, problems = read_description(text, file, topology)
    if not errors(problems):
        imported = DescribedApplication(
            application_id=application_id,
            text=write_description(nodes),
            kafka_streams=_version(kafka_streams, logged_version(text)),
            config=dict(config),
            repartitions=dict(repartitions),
            stores=dict(stores),
        )
        problems = (*problems, *_write_document(imported, bootstrap_server, command_config, output))
    print_problems(problems)
    context.exit(exit_for(problems))


def _version(given: KafkaStreamsVersion | None, logged: str | None) -> str:
    """Return the version for the document, and print a warning if the log names another one."""
    if given is not None:
        if logged is not None and logged not in (str(given), f"{given.release}.{logged.rpartition('.')[2]}"):
            click.echo(
                f"Warning: the log is of Kafka Streams {logged}, but --kafka-streams is {given}.", err=True
            )
        return given.written
    if logged is None:
        return DEFAULT_VERSION.written
    known = known_version(logged)
    return logged if known is None else known.written


def _import_all(request: ImportRequest) -> ExitCode:
    if request.folder is not None and request.folder.exists() and not request.folder.is_dir():
        raise click.BadParameter(
            f"'{request.folder}' is a file; --all requires a folder.", param_hint="--output"
        )
    try:
        return ExitCode.DONE if import_all(request) else ExitCode.PROBLEMS
    except ProblemsError as error:
        raise ProblemsExit(error) from None


def _refuse_options(conflicting: str, *options: str, context: click.Context) -> None:
    """Fail if one of `options` is combined with another option that makes it meaningless."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and set(parameter.opts) & set(options):
            raise click.UsageError(f"{parameter.opts[0]} cannot be combined with {conflicting}.")


def _write_document(
    imported: DescribedApplication,
    bootstrap_server: str | None,
    command_config: Path | None,
    output: Path | None,
) -> tuple[Problem, ...]:
    """Write the document with its open questions, unless there are other errors; return all problems."""
    try:
        connection = named_connection(bootstrap_server, command_config)
        imported, found = _complete(imported, connection, str(output or "document"))
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    if all(problem.code is ProblemCode.MISSING_DETAIL for problem in errors(found)):
        write(imported.document(_questions(found)), output)
    return found


def _is_stdin(description: Path) -> bool:
    return str(description) == "-"


def _read_description(description: Path) -> str:
    """Return the text; bytes that are not UTF-8 are in log lines, not in the description."""
    try:
        content = sys.stdin.buffer.read() if _is_stdin(description) else description.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{description} cannot be read: {error.strerror}.") from None
    return content.decode("utf-8", errors="replace")


def _complete(
    imported: DescribedApplication, connection: Connection | None, file: str
) -> tuple[DescribedApplication, tuple[Problem, ...]]:
    """Add the details that the live topics have; return the problems that remain.

    Raises:
        ProblemsError: The cluster could not be read.
    """
    loaded = load_text(imported.document(), file)
    if not loaded.documents:
        return imported, loaded.problems
    counts: Mapping[str, int] = {}
    if connection is not None:
        snapshot = read_snapshot(loaded.documents, connection, protocol_is_known=False)
        imported = _with_cluster_details(imported, loaded.documents[0], snapshot)
        loaded, counts = load_text(imported.document(), file), snapshot.partitions
    compiled = compile_documents(loaded.documents, counts)
    problems = (*loaded.problems, *(problem for each in compiled for problem in each.problems))
    return imported, tuple(p for p in problems if connection or p.code not in _NEED_A_CLUSTER)


def _with_cluster_details(
    imported: DescribedApplication, document: TopologyDocument, snapshot: ClusterSnapshot
) -> DescribedApplication:
    if document.described is None:
        return imported
    described = complete_from_cluster(document.described, document.application, snapshot)
    configs = [item for detail in described.stores.values() for item in detail.overrides.items()]
    group = snapshot.groups.get(imported.application_id)
    return attrs.evolve(
        imported,
        uses_streams_protocol=group is not None and group.members is None,
        observed=group_sentence(imported.application_id, snapshot),
        repartitions=described.repartition_partitions,
        stores={name: store_options(detail) for name, detail in described.stores.items()},
        copartitioned=described.copartitioned,
        broker_configs=sorted({name for name, value in configs if not is_valid(name, value)}),
    )


def _questions(problems: Sequence[Problem]) -> list[str]:
    return [
        f"{problem.summary} {problem.fix}"
        for problem in errors(problems)
        if problem.code is ProblemCode.MISSING_DETAIL
    ]
