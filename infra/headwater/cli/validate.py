"""`headwater validate`: check topology documents offline."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from headwater.cli.console import exit_for, print_json, print_line, print_problems, write_text
from headwater.cli.inputs import NEED_A_CLUSTER, find_violations
from headwater.cli.options import files_argument, partitions_option, policies_option, read_policies
from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, first_names
from headwater.spec import Documents, load_documents

_MOST_IDS = 20


@click.command()
@files_argument
@policies_option
@partitions_option(
    "Partition count of a source topic. Applications whose counts are all given are checked with them."
)
@click.option(
    "--run",
    "for_run",
    is_flag=True,
    help="Also check what `headwater run` needs: expressions, formats, and that classes can be imported.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "gitlab"]),
    default="text",
    show_default=True,
    help="github: annotations in the log of a workflow; gitlab: a Code Quality report.",
)
@click.pass_context
def validate(
    context: click.Context,
    files: Sequence[Path],
    *,
    policy_files: Sequence[Path],
    given: Sequence[tuple[str, int]],
    for_run: bool,
    form: str,
) -> None:
    """Check topology documents, offline.

    FILES are files, folders (all *.yaml, *.yml, *.json below) or patterns. Checks the syntax, the schema, the
    rules of Kafka Streams for topologies, conflicts between documents, and your own policies where they do
    not depend on a cluster. Exit code 0: valid, 1: not valid. An application with a source topic whose count
    is not given is valid as far as it can be checked. With --run, classes are imported in this process, and
    the extra `headwater[spark]` is required.

    \b
    Examples:
      headwater validate orders.yaml
      headwater validate topologies/ --policies headwater-policies.yaml
      headwater validate topologies/ --run
      headwater validate topologies/ --partitions orders=6 --format github
    """
    policies = read_policies(policy_files)
    loaded = load_documents(files)
    problems = tuple(_find_problems(loaded, policies, dict(given)))
    if for_run:
        # Needs Spark's extra, so this package does not import it.
        runtime = import_module("headwater_spark.commands.run")
        problems = tuple(dict.fromkeys((*problems, *runtime.run_problems(loaded.documents))))
    if form == "json":
        from headwater.report import problem_json  # noqa: PLC0415 - not needed for text

        print_json(
            {
                "applications": [document.application.id for document in loaded.documents],
                "problems": [problem_json(problem) for problem in problems],
            }
        )
    elif form == "github":
        from headwater.report.problems import github_annotations  # noqa: PLC0415 - not needed for text

        write_text(github_annotations(problems), None)
        _print_success(loaded, problems)
    elif form == "gitlab":
        from headwater.report.problems import code_quality  # noqa: PLC0415 - not needed for text

        write_text(json.dumps(code_quality(problems, _first_file(loaded, files)), indent=2) + "\n", None)
    else:
        print_problems(problems)
        _print_success(loaded, problems)
    context.exit(exit_for(problems))


def _first_file(loaded: "Documents", files: Sequence[Path]) -> str:
    """Return the file at which a report shows problems that have no location."""
    return next((document.application.at.file for document in loaded.documents), str(files[0]))


def _find_problems(
    loaded: Documents, policies: Sequence[Policy], counts: Mapping[str, int]
) -> Iterator[Problem]:
    yield from loaded.problems
    compiled = compile_documents(loaded.documents, counts)
    for each in compiled:
        yield from _offline_problems(each)
    yield from find_violations(loaded.documents, compiled, counts, policies)


def _offline_problems(compiled: CompiledApplication) -> Iterator[Problem]:
    """Yield the problems that do not depend on the unknown counts of source topics."""
    has_unknown_counts = bool(compiled.missing_sources or compiled.source_patterns)
    for problem in compiled.problems:
        if not (has_unknown_counts and problem.code in NEED_A_CLUSTER):
            yield problem
    declared = compiled.application.acls
    if declared is not None:
        from headwater.planner.acls import incomplete_needs  # noqa: PLC0415 - imports the planner

        yield from incomplete_needs(compiled, declared)


def _print_success(loaded: Documents, problems: Sequence[Problem]) -> None:
    if not exit_for(problems):
        print_line(_success_text(loaded))


def _success_text(loaded: Documents) -> str:
    ids = [document.application.id for document in loaded.documents]
    is_are = "s are" if len(ids) != 1 else " is"
    return f"{len(ids):,} application{is_are} valid: {first_names(ids, _MOST_IDS)}"
