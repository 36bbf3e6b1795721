"""`headwater agent run` and `manifest`: run an agent, and write the file that it can run from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from headwater.agent.command import agent_options, run_agent
from headwater.agent.manifest import build_manifest, inline_document, named_file
from headwater.cli.console import exit_for, json_text, print_problems, write_text
from headwater.cli.inputs import read_counts
from headwater.cli.options import cluster_options, files_argument, output_option, partitions_option
from headwater.compiler import compile_documents
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import ProblemsError
from headwater.spec import load_documents
from headwater.spec.files import find_files, read_regular_file
from headwater.spec.yaml_text import read_yaml


@click.command()
@agent_options(log_format="console")
@click.pass_context
def run(context: click.Context, /, **options: object) -> None:
    """Expand internal topics when source topics are expanded, until stopped (KIP-878).

    FILES are topology documents; the agent reads them again when they change. On SIGHUP the agent reads the
    cluster at once. Exit code 0: stopped, or with --once all topics exist and have their partitions; 1: an
    internal topic is missing, topics need more partitions, or documents or settings have errors; 75: the
    agent did not stop in time.

    \b
    Examples:
      headwater agent run topologies/ --bootstrap-server localhost:9092 --http 127.0.0.1:9878
      headwater agent run --manifest manifest.json --command-config client.properties --once
    """
    context.exit(run_agent(options))


@click.command("manifest")
@files_argument
@partitions_option("Partition count of a source topic.")
@cluster_options
@output_option
@click.pass_context
def manifest_(
    context: click.Context,
    files: Sequence[Path],
    *,
    given: Sequence[tuple[str, int]],
    cluster: NamedCluster,
    output: Path | None,
) -> None:
    """Write documents and their partition counts to one JSON file.

    The manifest contains the files that documents refer to. An agent that runs with --manifest needs no other
    file, and does not start if it computes other counts than those in the manifest.

    \b
    Examples:
      headwater agent manifest topologies/ --partitions orders=6 --output manifest.json
      headwater agent manifest topologies/ --bootstrap-server localhost:9092 --output manifest.json
    """
    loaded = load_documents(files)
    if exit_for(loaded.problems):
        print_problems(loaded.problems)
        context.exit(exit_for(loaded.problems))
    counts = {**read_counts(loaded.documents, cluster), **dict(given)}
    compiled = compile_documents(loaded.documents, counts)
    problems = (*loaded.problems, *(problem for one in compiled for problem in one.problems))
    print_problems(problems)
    if not exit_for(problems):
        write_text(json_text(dict(build_manifest(list(_read_raw(files)), compiled, counts))), output)
    context.exit(exit_for(problems))


def _read_raw(paths: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the data of the documents, which have no errors."""
    for file in find_files(paths)[0]:
        for raw in read_yaml(_read_text(file), str(file))[0]:
            yield inline_document(
                raw.data, {name: _read_text(file.parent / name) for name in named_file(raw.data)}
            )


def _read_text(file: Path) -> str:
    text = read_regular_file(file)
    if not isinstance(text, str):
        raise ProblemsError([text])
    return text
