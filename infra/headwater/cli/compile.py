"""`headwater compile`: show the internal topics that documents need."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from headwater.cli.console import exit_for, json_text, print_line, print_problems, print_rich, write_text
from headwater.cli.inputs import find_violations, read_counts, with_problems
from headwater.cli.options import (
    cluster_options,
    files_argument,
    output_option,
    partitions_option,
    policies_option,
    read_policies,
)
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import COMPILE, OFFLINE, errors
from headwater.spec import load_documents

_TOOL_FORMATS = ("strimzi", "terraform", "jikkou", "exclusions")
_FORMATS = ("text", "json", "dot", "mermaid", "svg", *_TOOL_FORMATS)


@click.command("compile")
@files_argument
@partitions_option("Partition count of an existing topic; overrides the cluster. May be repeated.")
@cluster_options
@policies_option
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="strimzi, terraform, jikkou: resources of these tools. exclusions: what they must ignore.",
)
@click.option(
    "--strimzi-cluster", metavar="NAME", help="With --format strimzi: the name of the `Kafka` resource."
)
@output_option
@click.pass_context
def compile_(
    context: click.Context,
    files: Sequence[Path],
    *,
    given: Sequence[tuple[str, int]],
    cluster: NamedCluster,
    policy_files: Sequence[Path],
    form: str,
    strimzi_cluster: str | None,
    output: Path | None,
) -> None:
    """Show the internal topics that documents need.

    Names, kinds, partition counts and settings are those that Kafka Streams would use. The counts of source
    topics are given by --partitions, or read from a cluster. Exit code 1: a count is not known, or there are
    other errors.

    \b
    Examples:
      headwater compile orders.yaml --partitions orders=6 --partitions customers=6
      headwater compile topologies/ --bootstrap-server localhost:9092 --format json
      headwater compile orders.yaml --partitions orders=6 --format svg --output orders.svg
      headwater compile topologies/ --partitions orders=6 --format strimzi --strimzi-cluster main
    """
    if (form == "strimzi") != (strimzi_cluster is not None):
        raise click.UsageError("--format strimzi requires --strimzi-cluster, and only this format has it.")
    policies = read_policies(policy_files)
    loaded = load_documents(files)
    counts = {**read_counts(loaded.documents, cluster), **dict(given)}
    is_offline = not cluster.is_named
    compiled = compile_documents(loaded.documents, counts, OFFLINE if is_offline else COMPILE)
    compiled = with_problems(compiled, tuple(find_violations(loaded.documents, compiled, counts, policies)))
    problems = (*loaded.problems, *(problem for application in compiled for problem in application.problems))
    if form == "text" and output is None and sys.stdout.isatty():
        from headwater.report.compiled import compile_rich  # noqa: PLC0415 - each format imports what it needs

        print_rich(compile_rich(compiled))
    elif form == "json":
        from headwater.report import compile_json  # noqa: PLC0415 - each format imports only what it needs

        write_text(json_text(compile_json(compiled, loaded.problems)), output)
    elif form not in _TOOL_FORMATS:
        write_text(_render_compiled(form, compiled, counts), output)
    elif not exit_for(problems):  # with a part of the topics, a tool might delete the others
        write_text(_tool_resources(form, compiled, strimzi_cluster or ""), output)
    print_problems(problems, after_result=form not in _TOOL_FORMATS)
    if not errors(loaded.problems) and all(each.subtopologies or each.is_observed for each in compiled):
        _note_unused(given, compiled)
    context.exit(exit_for(problems))


def _render_compiled(form: str, compiled: Sequence[CompiledApplication], counts: Mapping[str, int]) -> str:
    # Each format imports only what it needs.
    match form:
        case "svg":
            from headwater.report.svg import svg_text  # noqa: PLC0415

            return svg_text(compiled, counts)
        case "dot":
            from headwater.report.graph import build_graph, dot_text  # noqa: PLC0415

            return dot_text(build_graph(compiled, counts))
        case "mermaid":
            from headwater.report.graph import build_graph, mermaid_text  # noqa: PLC0415

            return mermaid_text(build_graph(compiled, counts))
        case _:
            from headwater.report.compiled import compile_text  # noqa: PLC0415

            return compile_text(compiled)


def _tool_resources(form: str, compiled: Sequence[CompiledApplication], strimzi_cluster: str) -> str:
    from headwater.report import other_tools  # noqa: PLC0415 - each format imports only what it needs

    try:
        match form:
            case "strimzi":
                return other_tools.strimzi_resources(compiled, strimzi_cluster)
            case "jikkou":
                return other_tools.jikkou_resources(compiled)
            case "terraform":
                return json_text(other_tools.terraform_resources(compiled))
            case _:
                return other_tools.exclusion_patterns(compiled)
    except other_tools.NotExpressibleError as error:
        raise click.ClickException(str(error)) from None


def _note_unused(given: Sequence[tuple[str, int]], compiled: Sequence[CompiledApplication]) -> None:
    """Print a note for each count of a topic that no document reads; it is probably a typo."""
    read = {topic for c in compiled for part in c.subtopologies for topic in (*part.sources, *part.sinks)}
    read |= {topic for c in compiled for topic in (*c.external_sources, *c.missing_sources, *c.global_topics)}
    for topic, count in given:
        if topic not in read:
            print_line(
                f"Note: --partitions {topic}={count} has no effect: no document reads {topic}.", err=True
            )
