"""`headwater import`: create documents from running applications."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from click.core import ParameterSource

from headwater.cli.console import ExitCode, exit_for, print_problems
from headwater.cli.import_all import ImportRequest, import_all
from headwater.cli.import_described import ImportOptions, import_described, import_group
from headwater.cli.import_jar import JarImport, import_jar
from headwater.cli.imported_documents import DescribedApplication
from headwater.cli.options import Count, Seconds, Setting, StoreDetails, Version, cluster_options, each_once
from headwater.kafka.command_line import NamedCluster, NamedPath
from headwater.model.problems import Problem, ProblemCode
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion

_OF_ALL = ("--topic", "--force", "--strimzi")
_OF_JAR = ("--jar", "--classpath", "--properties", "--timeout")
_DETAILS = ("--repartition", "--store")
_REFUSED_OPTIONS = {
    "--all": ("--describe", "--group", "--topology", "--assume-defaults", *_DETAILS, *_OF_JAR),
    "--jar": ("--describe", "--group", "--kafka-streams", "--assume-defaults", *_DETAILS, *_OF_ALL),
    "--group": ("--describe", "--application-id", "--topology", *_DETAILS, *_OF_ALL),
    "--describe": (*_OF_JAR, *_OF_ALL),
}
"""The option that says what is imported → the options that mean nothing with it."""


@click.command("import", context_settings={"allow_extra_args": True})
@click.option("--all", "everything", is_flag=True, help="Import all applications of the cluster.")
@click.option(
    "--describe",
    "description",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="The output of Topology#describe(), with or without other log lines; - is standard input.",
)
@click.option(
    "--group",
    metavar="ID",
    help="The application id of a streams group: the document has the topology that its clients have sent to "
    "the brokers (KIP-1331, Kafka 4.4).",
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
    type=Seconds(min=0, min_open=True),
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
    callback=each_once,
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
    help="The version of Kafka Streams that the application runs, 2.5 or later. Default: the version in the "
    f"log, if the text is in a log; otherwise {DEFAULT_VERSION.release} is assumed, and listed as unknown.",
)
@cluster_options
@click.option(
    "-o",
    "--output",
    type=NamedPath(allow_dash=True, path_type=Path),
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
@click.option(
    "--strimzi",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="With --all: read Strimzi's KafkaTopic and KafkaUser resources of this file or folder instead of a "
    "cluster; may be repeated.",
)
@click.pass_context
def import_(context: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - the fields of `_Options`
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

    If the file of -o is an imported document of the application, it is updated: other sections, configs, and
    details that the new text still needs are kept. Comments are not.

    Exit code 0: the document was written, warnings list what is unknown; 1: it was not written, or a required
    detail is missing; 2: it was written, but differs from the topics of the cluster.

    With --group, the brokers have the topology: clients of Kafka Streams 4.4 with the streams protocol send
    it to brokers of Kafka 4.4 whose plugin stores it (KIP-1331). Details are read from the topics, as above.

    With --all, no text is required: applications are found by their groups and the names of their internal
    topics. If the brokers have the topology of a group, its document is complete. The others list the
    topology as missing, and partition counts do not change until you add it. The cluster is not changed.
    Files are overwritten only with --force. Exit code 1: a file exists and was not written, or no topic is
    visible.

    \b
    Examples:
      headwater import --jar app.jar --topology com.acme.Orders::topology --properties app.properties
      headwater import --all --bootstrap-server kafka:9092 -o topologies/
      kubectl get kafkatopics,kafkausers -o yaml > all.yaml; headwater import --all --strimzi all.yaml
      headwater import --group orders --bootstrap-server kafka:9092 -o orders.yaml
      headwater import --describe app.txt --application-id orders --bootstrap-server kafka:9092 -o app.yaml
      headwater import --describe app.txt --application-id orders --store counts=window,retention=1d
      kubectl logs orders-0 | headwater import --describe - --application-id orders -o app.yaml
    """
    if context.args:
        raise click.UsageError(
            f"Got unexpected extra argument ({context.args[0]}). Name the text of Topology#describe() by "
            "--describe, or the code of the application by --jar."
        )
    options = _Options(**values)
    if options.everything:
        _refuse_options("--all", context)
        context.exit(_import_applications(options))
    if options.jar is not None:
        _refuse_options("--jar", context)
        problems = _import_from_jar(options.jar, options)
    elif options.group is not None:
        _refuse_options("--group", context)
        problems = import_group(options.group, options.import_options)
    elif options.description is not None and len(options.ids) == 1:
        _refuse_options("--describe", context)
        problems = _import_description(options.description, options)
    else:
        raise click.UsageError(
            "--jar and --topology, --describe and --application-id, --group, or --all are required."
        )
    print_problems(problems)
    differs = any(problem.code is ProblemCode.DIFFERS_FROM_CLUSTER for problem in problems)
    context.exit(exit_for(problems) or (ExitCode.DRIFT if differs else ExitCode.DONE))


@attrs.frozen(kw_only=True)
class _Options:
    """The options of the command, by the names that their declarations give them."""

    everything: bool
    description: Path | None
    group: str | None
    jar: Path | None
    class_path: Sequence[str]
    properties: Path | None
    timeout: float
    ids: Sequence[str]
    topology: str | None
    repartitions: Sequence[tuple[str, int]]
    stores: Sequence[tuple[str, Mapping[str, Any]]]
    assume_defaults: bool
    config: Sequence[tuple[str, str]]
    kafka_streams: KafkaStreamsVersion | None
    cluster: NamedCluster
    output: Path | None
    topics: Sequence[str]
    force: bool
    strimzi: Sequence[Path]

    @property
    def import_options(self) -> ImportOptions:
        """The options of an import of one application."""
        return ImportOptions(
            config=dict(self.config),
            kafka_streams=self.kafka_streams,
            cluster=self.cluster,
            output=self.output,
            assume_defaults=self.assume_defaults,
        )


def _import_applications(options: _Options) -> ExitCode:
    if options.strimzi and options.cluster.is_named:
        raise click.UsageError("--strimzi replaces the cluster: it cannot be combined with its options.")
    folder = None if options.output is None or str(options.output) == "-" else options.output
    if folder is not None and folder.exists() and not folder.is_dir():
        raise click.BadParameter(f"'{folder}' is a file; --all requires a folder.", param_hint="--output")
    request = ImportRequest(
        cluster=options.cluster,
        application_ids=options.ids,
        internal_topics=options.topics,
        config=dict(options.config),
        kafka_streams=options.kafka_streams,
        folder=folder,
        force=options.force,
        strimzi=options.strimzi,
    )
    return ExitCode.DONE if import_all(request) else ExitCode.PROBLEMS


def _import_from_jar(jar: Path, options: _Options) -> Sequence[Problem]:
    """Import from code; raise `click.UsageError` if no method is named, or several ids."""
    method, ids = options.topology, options.ids
    if method is None or not re.fullmatch(r"[\w.$]+::[\w$]+", method) or len(ids) > 1:
        raise click.UsageError("--jar requires --topology CLASS::NAME, such as com.acme.Orders::topology.")
    return import_jar(
        JarImport(
            jar=jar,
            topology=method,
            class_path=options.class_path,
            properties=options.properties,
            config={**dict(options.config), **({"application.id": ids[0]} if ids else {})},
            timeout_seconds=options.timeout,
            cluster=options.cluster,
            output=options.output,
        )
    )


def _import_description(description: Path, options: _Options) -> Sequence[Problem]:
    imported = DescribedApplication(
        application_id=options.ids[0],
        text="",
        repartitions=dict(options.repartitions),
        stores=dict(options.stores),
    )
    return import_described(imported, description, options.topology, options.import_options)


def _refuse_options(imported: str, context: click.Context) -> None:
    """Raise `click.UsageError` if an option means nothing with `imported`, which says what is imported."""
    refused = set(_REFUSED_OPTIONS[imported])
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and refused & set(parameter.opts):
            raise click.UsageError(f"{parameter.opts[0]} cannot be combined with {imported}.")
