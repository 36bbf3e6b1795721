"""`headwater import`: create documents from running applications."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from headwater.cli.cluster import read_snapshot
from headwater.cli.console import ExitCode, ProblemsExit, exit_for, print_problems, write
from headwater.cli.import_all import ImportRequest, import_all
from headwater.cli.import_details import (
    differences_from_cluster,
    with_cluster_details,
    with_owners,
    with_unknown_details,
)
from headwater.cli.import_jar import JarImport, import_jar
from headwater.cli.imported_documents import DescribedApplication
from headwater.cli.options import Count, Setting, StoreDetails, Version, cluster_options
from headwater.compiler import compile_documents
from headwater.describe import read_description, write_description
from headwater.kafka import Connection
from headwater.kafka.command_line import named_connection
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion, logged_version, read_any_version
from headwater.spec import load_text

_OF_JAR = ("--jar", "--classpath", "--properties", "--timeout")
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
    "--jar",
    type=click.Path(exists=True, path_type=Path),
    help="The jar of the application, or a folder of its classes. Its code builds the topology.",
)
@click.option(
    "--classpath",
    "class_path",
    multiple=True,
    metavar="JARS",
    help="With --jar: a jar that the application needs, a folder of classes, or all jars of a folder "
    "('libs/*'); may be repeated.",
)
@click.option(
    "--properties",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --jar: the properties file of the application.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="With --jar: seconds until Java is killed.",
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
    metavar="NAME",
    help="With --jar: the method or field with the topology, CLASS::NAME. With --describe: the topology, if "
    "the text describes several different ones, by its name or its number in the text.",
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
    help="Details of a store that the text does not have: its kind, unless the text shows it, then "
    "retention=, logging=, retainDuplicates=true, sourceTopic=, ownChangelog=true or overrides.KEY=.",
)
@click.option(
    "--assume-defaults",
    is_flag=True,
    help="What neither the text nor the cluster shows has Kafka Streams' default: no explicit partition "
    "counts, logging without overrides, no versioned stores. It is not listed as unknown.",
)
@click.option(
    "--config", "config", multiple=True, type=Setting(), help="A config of the application, KEY=VALUE."
)
@click.option(
    "--kafka-streams",
    type=Version(is_of_running=True),
    help="The version of Kafka Streams that the application runs, 2.5 or later. Default: that of the log, if "
    f"the text is in a log; otherwise {DEFAULT_VERSION.release} is assumed, and listed as unknown.",
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
    jar: Path | None,
    class_path: Sequence[str],
    properties: Path | None,
    timeout: float,
    ids: Sequence[str],
    topology: str | None,
    repartitions: Sequence[tuple[str, int]],
    stores: Sequence[tuple[str, Mapping[str, Any]]],
    assume_defaults: bool,
    config: Sequence[tuple[str, str]],
    kafka_streams: KafkaStreamsVersion | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    output: Path | None,
    topics: Sequence[str],
    force: bool,
) -> None:
    """Create documents from code, or from running applications.

    With --jar, the code of the application builds its topology, without a broker. The document has everything
    that decides the internal topics. The method or field may be static, or belong to a class that has a
    constructor without parameters. A method has no parameter, or one: Properties, a Map or a StreamsBuilder.
    Other sections of an existing document are kept.

    The text of `Topology#describe()` does not show everything that decides the internal topics: explicit
    partition counts, the kind and retention of some stores, disabled logging, overrides of changelogs, the
    application's config, protocol and version. With a cluster, they are read from the topics and the group of
    the application, and the document is compared with these topics: each difference is a warning. What
    neither shows is listed under `describe.unknown` of the document, and every run warns of it. Without the
    kind or the retention of a store whose changelog needs it, the document has an error, too.

    Exit code 0: the document was written, warnings list what is unknown; 1: it was not written, or a required
    detail is missing; 2: it was written, but differs from the topics of the cluster.

    With --all, no text is required: applications are found by their groups and the names of their internal
    topics. A cluster does not show the topology, so each document lists it as missing, and partition counts
    do not change until you add it. The cluster is not changed. Files are overwritten only with --force.

    \b
    Examples:
      headwater import --jar app.jar --topology com.acme.Orders::topology --properties app.properties
      headwater import --all --bootstrap-server kafka:9092 -o topologies/
      headwater import --describe app.txt --application-id orders --bootstrap-server kafka:9092 -o app.yaml
      headwater import --describe app.txt --application-id orders --store counts=window,retention=1d
      kubectl logs orders-0 | headwater import --describe - --application-id orders -o app.yaml
    """
    if everything:
        _refuse_options(
            *("--all", "--describe", "--topology", "--repartition", "--store", "--assume-defaults", *_OF_JAR),
            context=context,
        )
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
    if jar is not None:
        _refuse_options(
            *("--jar", "--describe", "--repartition", "--store", "--assume-defaults", "--kafka-streams"),
            *("--topic", "--force"),
            context=context,
        )
        if topology is None or not re.fullmatch(r"[\w.$]+::[\w$]+", topology) or len(ids) > 1:
            raise click.UsageError(
                "--jar requires --topology CLASS::NAME, such as com.acme.Orders::topology."
            )
        arguments = JarImport(
            jar=jar,
            topology=topology,
            class_path=class_path,
            properties=properties,
            config={**dict(config), **({"application.id": ids[0]} if ids else {})},
            timeout_seconds=timeout,
            bootstrap_server=bootstrap_server,
            command_config=command_config,
            output=output,
        )
        _end(context, _import_jar(arguments))
    if description is None or len(ids) != 1:
        raise click.UsageError(
            "--jar and --topology, --describe and --application-id, or --all are required."
        )
    _refuse_options("--describe", "--force", "--topic", *_OF_JAR, context=context)
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
            names_version=kafka_streams is not None or logged_version(text) is not None,
            config=dict(config),
            repartitions=dict(repartitions),
            stores=dict(stores),
        )
        problems = (
            *problems,
            *_write_document(
                imported, bootstrap_server, command_config, output, assume_defaults=assume_defaults
            ),
        )
    _end(context, problems)


def _end(context: click.Context, problems: Sequence[Problem]) -> None:
    """Print the problems, and exit with the code for them."""
    print_problems(problems)
    differs = any(problem.code is ProblemCode.DIFFERS_FROM_CLUSTER for problem in problems)
    context.exit(exit_for(problems) or (ExitCode.DRIFT if differs else ExitCode.DONE))


def _import_jar(arguments: JarImport) -> tuple[Problem, ...]:
    try:
        return import_jar(arguments)
    except ProblemsError as error:
        raise ProblemsExit(error) from None


def _version(given: KafkaStreamsVersion | None, logged: str | None) -> str:
    """Return the version for the document, and print a warning if the log names another one."""
    if given is not None:
        named = None if logged is None else read_any_version(logged)
        if logged is not None and (named is None or named.release != given.release):
            click.echo(
                f"Warning: the log is of Kafka Streams {logged}, but --kafka-streams is {given}.", err=True
            )
        return given.written
    if logged is None:
        return DEFAULT_VERSION.written
    known = read_any_version(logged)
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
    *,
    assume_defaults: bool,
) -> tuple[Problem, ...]:
    """Write the document with its open questions, unless there are other errors; return all problems."""
    try:
        connection = named_connection(bootstrap_server, command_config)
        imported, found = _complete(
            imported, connection, str(output or "document"), assume_defaults=assume_defaults
        )
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
    imported: DescribedApplication, connection: Connection | None, file: str, *, assume_defaults: bool
) -> tuple[DescribedApplication, tuple[Problem, ...]]:
    """Add the details that the live topics have, list the unknown ones; return the problems that remain.

    Raises:
        ProblemsError: The cluster could not be read.
    """
    loaded = load_text(imported.document(), file)
    if not loaded.documents:
        return imported, loaded.problems
    snapshot = None
    if connection is not None:
        snapshot = read_snapshot(loaded.documents, connection, protocol_is_known=False)
        imported = with_cluster_details(imported, loaded.documents[0], snapshot)
        loaded = load_text(imported.document(), file)
    if loaded.documents:
        imported = with_unknown_details(
            imported, loaded.documents[0], snapshot, assume_defaults=assume_defaults
        )
        loaded = load_text(imported.document(), file)
    compiled = compile_documents(loaded.documents, {} if snapshot is None else snapshot.partitions)
    found = [problem for each in compiled for problem in each.problems]
    if snapshot is None:
        found = [problem for problem in found if problem.code not in _NEED_A_CLUSTER]
    else:
        found += differences_from_cluster(
            compiled, loaded.documents, with_owners(compiled, loaded.documents, snapshot, connection)
        )
    return imported, (*loaded.problems, *found)


def _questions(problems: Sequence[Problem]) -> list[str]:
    return [
        f"{problem.summary} {problem.fix}"
        for problem in errors(problems)
        if problem.code is ProblemCode.MISSING_DETAIL
    ]
