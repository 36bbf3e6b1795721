"""`headwater reshard`: more partitions for a stopped application, which keeps its state."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from headwater.cli.console import ExitCode, print_line
from headwater.cli.options import Count, Setting, each_once, policies_option, read_policies
from headwater.kafka.command_line import NamedCluster, NamedPath, cluster_options
from headwater.toolchain import spark_java_options
from headwater_spark.commands.console import (
    JavaCode,
    Progress,
    conf_option,
    interrupted_by_sigterm,
    java_options,
    parse_conf,
    read_single_document,
)
from headwater_spark.driver.run import runtime_installed

if TYPE_CHECKING:
    from headwater_spark.driver.reshard.start import OpenExecutor, ReshardOptions, ReshardResult
    from headwater_spark.engine.partitioners.hashing import UserPartitioner

_LOCAL = "local[*,4]"
"""All cores. Spark repeats a failed task, so that not all shares are executed again if one fails."""
SUBMITTED = "as spark-submit says"
"""The value of `--master` in a program of spark-submit."""


@click.command()
@click.argument("document", type=NamedPath(path_type=Path))
@click.option(
    "--partitions",
    "counts",
    type=Count(),
    callback=each_once,
    multiple=True,
    help="The new partition count of a source topic. May be repeated. Default: the counts that the source "
    "topics have, for topics that were expanded before.",
)
@click.option("--check", "checks_only", is_flag=True, help="Check, and change nothing. Also while it runs.")
@click.option(
    "--rewrite-unprocessed",
    "rewritten",
    metavar="TOPIC",
    multiple=True,
    help="Write the unprocessed records of this source topic again, to the partitions of their keys. Other "
    "readers of the topic read them twice. May be repeated.",
)
@click.option(
    "--layout",
    "layouts",
    type=Setting(),
    multiple=True,
    metavar="STORE=LAYOUT",
    help="The layout of the keys of a store that a document from code does not show: key, windowed-key, "
    "session, window, outer-join, join-buffer, subscription. May be repeated.",
)
@click.option(
    "--partitioner",
    "partitioners",
    type=Setting(),
    multiple=True,
    metavar="TOPIC=PARTITIONER",
    help="The partitioner of the records of an input topic, if it is not Kafka's default one: a Python "
    "function of the serialized key and the partition count (MODULE:FUNCTION), or a class of Java, with "
    "--jar. May be repeated.",
)
@click.option(
    "--unchecked-partitioner",
    "unchecked",
    metavar="TOPIC",
    multiple=True,
    help="Use the partitioner of this input topic although it cannot be checked, because the state has one "
    "partition. May be repeated.",
)
@java_options
@click.option(
    "--processes",
    type=click.IntRange(1, 4),
    help="How many processes move the entries. Default: up to 4 for a million entries or more, if at least 4 "
    "cores are free; otherwise 1.",
)
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Move the entries in Spark jobs: with a local master on all cores of this machine, otherwise on a "
    "cluster.",
)
@click.option("--master", metavar="URL", help="Where Spark runs, with --spark. Default: local[*,4].")
@conf_option
@click.option(
    "--tasks",
    type=click.IntRange(1, 1000),
    help="How many Spark tasks share the partitions of a topic, with --spark. Default: one for each "
    "partition, up to 100 on a cluster and 2 for each core of this machine.",
)
@policies_option
@cluster_options("The cluster of the application.")
@click.pass_context
def reshard(context: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - the fields of `_Options`
    """Give a stopped application more partitions, and each key its state.

    For any Kafka Streams application, also on Spark. The internal topics get the counts that
    follow from the source topics, and each entry of each store moves to the partition that its key has then.
    Unprocessed records of repartition topics move, too. Stop the producers and the application first. All is
    checked before anything changes. If the command is interrupted, run it again: until it has succeeded, do
    not start the application. Exit code 0: all is moved; 1: it is not.

    \b
    Examples:
      headwater reshard orders.yaml --partitions orders=12 --check --bootstrap-server localhost:9092
      headwater reshard orders.yaml --partitions orders=12 --bootstrap-server localhost:9092
      headwater reshard orders.yaml --command-config client.properties --spark --master spark://host:7077
    """
    with runtime_installed():
        from headwater_spark.commands.java_partitioners import java_partitioners  # noqa: PLC0415 - slow
        from headwater_spark.driver.reshard.start import reshard_application  # noqa: PLC0415 - slow
    options = _Options(**values)
    _check_names(options)
    _check_spark_options(options)
    options.java_code.check(options.java_classes)
    functions = {topic: _load_partitioner(name) for topic, name in options.partitioners if ":" in name}
    document = read_single_document(options.document)
    report = Progress(document.application.id).report
    with (
        interrupted_by_sigterm(),
        java_partitioners(options.java_classes, options.java_code, document) as of_java,
    ):
        reshard_options = _reshard_options(options, {**functions, **of_java})
        result = reshard_application(document, options.cluster.connection(), reshard_options, report)
    _print_result(result, checks_only=options.checks_only)
    context.exit(ExitCode.DONE)


@attrs.frozen(kw_only=True)
class _Options:
    """The options of the command, by the names that their declarations give them."""

    document: Path
    counts: Sequence[tuple[str, int]]
    checks_only: bool
    rewritten: Sequence[str]
    layouts: Sequence[tuple[str, str]]
    partitioners: Sequence[tuple[str, str]]
    unchecked: Sequence[str]
    jar: Path | None
    class_path: Sequence[str]
    properties: Path | None
    key_serdes: Sequence[tuple[str, str]]
    timeout: float | None
    processes: int | None
    on_spark: bool
    master: str | None
    conf: Sequence[str]
    tasks: int | None
    policy_files: Sequence[Path]
    cluster: NamedCluster

    @property
    def java_classes(self) -> Mapping[str, str]:
        """Topic → class of its partitioner, which is written in Java."""
        return {topic: name for topic, name in self.partitioners if ":" not in name}

    @property
    def java_code(self) -> JavaCode:
        return JavaCode(
            jar=self.jar,
            class_path=self.class_path,
            properties=self.properties,
            key_serdes=dict(self.key_serdes),
            timeout_seconds=self.timeout,
        )


def _check_names(options: _Options) -> None:
    """Raise `click.UsageError` for unknown layouts, topics named twice, and topics without a partitioner."""
    from headwater_spark.engine.scaling.entry_layouts import LAYOUTS  # noqa: PLC0415 - slow

    if unknown := [layout for _, layout in options.layouts if layout not in LAYOUTS]:
        raise click.UsageError(f"{unknown[0]} is no layout. Layouts: {', '.join(LAYOUTS)}.")
    for option, pairs in (
        ("--partitions", options.counts),
        ("--layout", options.layouts),
        ("--partitioner", options.partitioners),
        ("--key-serde", options.key_serdes),
    ):
        if len(dict(pairs)) < len(pairs):
            raise click.UsageError(f"{option} names the same topic or store twice.")
    if other := sorted(set(options.unchecked) - dict(options.partitioners).keys()):
        raise click.UsageError(
            f"--unchecked-partitioner {other[0]} requires --partitioner {other[0]}=PARTITIONER."
        )


def _check_spark_options(options: _Options) -> None:
    """Raise `click.UsageError` if options cannot be combined."""
    if not options.on_spark:
        given = {"--master": options.master is not None, "--conf": options.conf, "--tasks": options.tasks}
        if needless := next((option for option, value in given.items() if value), None):
            raise click.UsageError(f"{needless} requires --spark.")
        return
    if options.processes is not None:
        raise click.UsageError(
            "--processes cannot be combined with --spark. --tasks decides how many tasks run."
        )
    for topic, name in options.java_classes.items():
        raise click.UsageError(
            f"--partitioner {topic}={name} cannot be combined with --spark: executors do not run classes of "
            "Java. Omit --spark, or name a Python function."
        )


def _reshard_options(options: _Options, partitioners: "Mapping[str, UserPartitioner]") -> "ReshardOptions":
    from headwater_spark.driver.reshard.start import ReshardOptions  # noqa: PLC0415 - slow
    from headwater_spark.engine.scaling.entry_layouts import LAYOUTS  # noqa: PLC0415 - slow

    return ReshardOptions(
        partitions=dict(options.counts),
        rewritten=frozenset(options.rewritten),
        layouts={store: LAYOUTS[layout] for store, layout in options.layouts},
        partitioners=partitioners,
        unchecked=frozenset(options.unchecked),
        policies=read_policies(options.policy_files),
        checks_only=options.checks_only,
        processes=options.processes,
        open_executor=_spark_opener(options.master, options.conf, options.tasks)
        if options.on_spark
        else None,
    )


def _spark_opener(master: str | None, conf: Sequence[str], tasks: int | None) -> "OpenExecutor":
    """Return what opens Spark; `SUBMITTED` as master: as spark-submit says."""
    from headwater_spark.driver.reshard.spark_job import SparkSettings, open_spark  # noqa: PLC0415 - slow

    is_submitted = master == SUBMITTED
    settings = SparkSettings(
        master=None if is_submitted else master or _LOCAL,
        conf=parse_conf(conf),
        java_options=() if is_submitted else spark_java_options(),
        tasks=tasks,
    )
    return partial(open_spark, settings)


def _print_result(result: "ReshardResult", *, checks_only: bool) -> None:
    id_ = result.application
    if not result.counts:
        print_line(f"{id_}: no state has to move. Nothing was changed.")
    for topic, (before, after) in sorted(result.counts.items()):
        print_line(f"{topic}: {before} → {after} partitions")
    for topic in result.join_buffers:
        print_line(
            f"warning: {topic} has buffered records of a join. `headwater run` restores them. Kafka Streams "
            "does not: it loses them, or joins them without the table. Empty the buffer before you stop the "
            'application: see "Buffered records of joins" in docs/more-partitions.md.'
        )
    if result.counts and result.is_running:
        print_line(
            f"{id_}: the state can move, as far as that can be checked while the application runs. "
            "Unprocessed records and open transactions are checked when it is stopped. Nothing was changed."
        )
    elif result.counts and checks_only:
        print_line(f"{id_}: the state can move. Nothing was changed.")
    elif result.counts:
        print_line(
            f"{id_}: the state has moved ({result.written:,} changelog records). Start the application."
        )


def _load_partitioner(name: str) -> "UserPartitioner":
    """Return a user's partitioner; raises `click.UsageError` if it cannot be imported."""
    from headwater_spark.engine.partitioners.hashing import UserPartitioner  # noqa: PLC0415 - slow
    from headwater_spark.engine.program.user_code import load_class  # noqa: PLC0415 - slow

    try:
        function = load_class(name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise click.UsageError(f"--partitioner {name} cannot be imported: {reason}.") from error
    if not callable(function):
        raise click.UsageError(f"--partitioner {name} is not a function.")
    return UserPartitioner(name, function)
