"""`headwater state copy`: state for stores and repartition topics that were renamed."""

from collections.abc import Sequence
from pathlib import Path

import click

from headwater.cli.console import ExitCode, print_line
from headwater.cli.options import Setting, policies_option, read_policies
from headwater.compiler import StreamsConfig
from headwater.kafka.command_line import NamedCluster, NamedPath, cluster_options
from headwater_spark.commands.console import Progress, interrupted_by_sigterm, read_single_document
from headwater_spark.driver.run import runtime_installed


@click.command()
@click.argument("document", type=NamedPath(path_type=Path))
@click.option(
    "--store",
    "stores",
    type=Setting(),
    multiple=True,
    metavar="OLD=NEW",
    help="Copy the changelog topic of the store OLD to the changelog topic of NEW. May be repeated.",
)
@click.option(
    "--topic",
    "topics",
    type=Setting(),
    multiple=True,
    metavar="OLD=NEW",
    help="Copy a changelog topic, or the unprocessed records and offsets of a repartition topic, by full "
    "names. May be repeated.",
)
@click.option(
    "--undo",
    is_flag=True,
    help="Delete the new topics of this copy, if nothing but the copy is in them. Then start the old "
    "version.",
)
@policies_option
@cluster_options("The cluster of the application.")
@click.pass_context
def copy(
    context: click.Context,
    document: Path,
    *,
    stores: Sequence[tuple[str, str]],
    topics: Sequence[tuple[str, str]],
    undo: bool,
    policy_files: Sequence[Path],
    cluster: NamedCluster,
) -> None:
    """Copy state to topics with other names, after a rename.

    DOCUMENT describes the new version of the application. Stop the old version first. Records keep their
    partitions, timestamps and headers. New topics that do not exist are created. The copy is compared with
    the original. Old topics do not change: until the new version has started, `--undo` deletes the copy, and
    the old version can be started again. If the command is interrupted, run it again. Exit code 0: all is
    copied, or undone; 1: it is not.

    \b
    Examples:
      headwater state copy orders.yaml --store KSTREAM-AGGREGATE-STATE-STORE-0000000003=counts \\
        --bootstrap-server localhost:9092
      headwater state copy orders.yaml --topic orders-app-a-repartition=orders-app-b-repartition \\
        --command-config client.properties
      headwater state copy orders.yaml --store KSTREAM-AGGREGATE-STATE-STORE-0000000003=counts --undo \\
        --bootstrap-server localhost:9092
    """
    with runtime_installed():
        from headwater_spark.driver.reshard.copy_undo import undo_copy  # noqa: PLC0415 - slow
        from headwater_spark.driver.reshard.state_copy import copy_state  # noqa: PLC0415 - slow
    if not stores and not topics:
        raise click.UsageError("--store or --topic is required.")
    found = read_single_document(document)
    id_ = found.application.id
    prefix = StreamsConfig.from_application(found.application).topic_prefix or id_
    renames = [(f"{prefix}-{old}-changelog", f"{prefix}-{new}-changelog") for old, new in stores] + list(
        topics
    )
    connection, report = cluster.connection(), Progress(id_).report
    if undo:
        with interrupted_by_sigterm():
            deleted = undo_copy(found, connection, renames, report)
        for topic in deleted:
            print_line(f"{topic}: deleted")
        print_line(f"{id_}: the copy is undone. Start the old version.")
        context.exit(ExitCode.DONE)
    policies = read_policies(policy_files)
    with interrupted_by_sigterm():
        result = copy_state(found, connection, renames, report, policies=policies)
    for old, new in result.copies:
        print_line(f"{old} → {new}")
    print_line(f"{id_}: the state is copied ({result.records:,} records). Start the new version.")
    context.exit(ExitCode.DONE)
