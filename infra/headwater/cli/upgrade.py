"""`headwater upgrade`: show what another version of Kafka Streams changes for applications."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import click

from headwater.cli.console import ExitCode, json_text, print_problems, print_rich, write_text
from headwater.cli.edit_inputs import EditInputs, edit_exit_code, load_before, load_side, show_edit
from headwater.cli.inputs import read_named_cluster
from headwater.cli.options import Version, cluster_options, files_argument, output_option, partitions_option
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster
from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import OFFLINE, PLAN, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.upgrade import Upgrade, find_upgrade
from headwater.spec import load_documents

_FORMATS = ("text", "json", "markdown")


@click.command()
@files_argument
@click.option("--to", required=True, type=Version(), help="The version to upgrade to, such as 4.4.")
@partitions_option("Partition count of an existing topic; overrides the cluster. May be repeated.")
@click.option(
    "--before",
    type=click.Path(exists=True, path_type=Path),
    help="The documents as they run, if the topology changes together with the version: shows one report of "
    "both, as `headwater change` does.",
)
@cluster_options
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@output_option
@click.pass_context
def upgrade(
    context: click.Context,
    files: Sequence[Path],
    *,
    to: KafkaStreamsVersion,
    given: Sequence[tuple[str, int]],
    before: Path | None,
    cluster: NamedCluster,
    form: str,
    output: Path | None,
) -> None:
    """Show what another version of Kafka Streams changes for applications.

    Compares the version that each document names (`application.kafkaStreams`) with the one to upgrade to:
    internal topics, nodes, co-partitioning, and what happens to state. Changes nothing. With a cluster,
    topics that do not exist have no data to lose. Exit code 0: nothing changes; 1: documents or cluster could
    not be read; 2: something changes; 3: an application has errors, so the comparison is not complete.

    \b
    Examples:
      headwater upgrade topologies/ --to 4.4
      headwater upgrade topologies/ --to 4.4 --bootstrap-server localhost:9092
      headwater upgrade orders.yaml --to 4.4 --partitions orders=6 --format markdown --output upgrade.md
      headwater upgrade new/ --to 4.4 --before running/
    """
    if before is not None:
        inputs = EditInputs(cluster, dict(given))
        new = load_side(files)
        edit = inputs.compare(
            load_before(before, new).documents, [_for_version(document, to) for document in new.documents]
        )
        print_problems(new.problems)
        show_edit(edit, form, output)
        context.exit(edit_exit_code(edit))
    loaded = load_documents(files)
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    snapshot = read_named_cluster(loaded.documents, cluster)
    found = _find_changes(loaded.documents, to, snapshot, dict(given))
    print_problems(loaded.problems)
    if form == "text" and output is None and sys.stdout.isatty():
        from headwater.report.upgrade import upgrade_rich  # noqa: PLC0415 - slow

        print_rich(upgrade_rich(found))
    else:
        write_text(_render_upgrade(form, found), output)
    context.exit(_exit_code(found))


def _find_changes(
    documents: Sequence[TopologyDocument],
    to: KafkaStreamsVersion,
    snapshot: ClusterSnapshot | None,
    given: Mapping[str, int],
) -> Upgrade:
    counts = {**(snapshot.partitions if snapshot is not None else {}), **given}
    caller = OFFLINE if snapshot is None else PLAN
    before = compile_documents(documents, counts, caller)
    assumed: set[str] = set()
    if snapshot is None:
        assumed = {topic for application in before for topic in application.missing_sources}
    if assumed:
        # All get the same count, so that names can be compared.
        counts |= dict.fromkeys(assumed, 1)
        before = compile_documents(documents, counts, caller)
    after = compile_documents([_for_version(document, to) for document in documents], counts, caller)
    return find_upgrade(before, after, to, snapshot=snapshot, assumed=assumed)


def _for_version(document: TopologyDocument, to: KafkaStreamsVersion) -> TopologyDocument:
    application = attrs.evolve(document.application, kafka_streams=to, names_version=True)
    return attrs.evolve(document, application=application)


def _exit_code(found: Upgrade) -> ExitCode:
    if found.problems:
        return ExitCode.REFUSED
    return ExitCode.DRIFT if any(found.changes) else ExitCode.DONE


def _render_upgrade(form: str, found: Upgrade) -> str:
    # Each format imports only what it needs.
    match form:
        case "json":
            from headwater.report.upgrade import upgrade_json  # noqa: PLC0415

            return json_text(upgrade_json(found))
        case "markdown":
            from headwater.report.upgrade import upgrade_markdown  # noqa: PLC0415

            return upgrade_markdown(found)
        case _:
            from headwater.report.upgrade import upgrade_text  # noqa: PLC0415

            return f"{upgrade_text(found)}\n"
