"""`headwater validate`: check topology documents offline."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from headwater.cli.console import exit_for, print_json, print_problems
from headwater.cli.options import files_argument, policies_option
from headwater.cli.policies import read_policies, violations
from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.acls import incomplete_needs
from headwater.spec import Documents, load_documents

_NEED_A_CLUSTER = {ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS}


@click.command()
@files_argument
@policies_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def validate(
    context: click.Context, files: Sequence[Path], *, policy_files: Sequence[Path], form: str
) -> None:
    """Check topology documents, offline.

    FILES are files, folders (all *.yaml, *.yml, *.json below) or patterns. Checks the syntax, the schema, the
    rules of Kafka Streams for topologies, conflicts between documents, and your own policies where they do
    not depend on a cluster. Exit code 0: valid, 1: not valid.

    \b
    Examples:
      headwater validate orders.yaml
      headwater validate topologies/ --policies headwater-policies.yaml
      headwater validate topologies/ --format json
    """
    policies = read_policies(policy_files)
    loaded = load_documents(files)
    problems = tuple(_find_problems(loaded, policies))
    if form == "json":
        from headwater.report import problem_json  # noqa: PLC0415 - not needed for text

        print_json(
            {
                "applications": [document.application.id for document in loaded.documents],
                "problems": [problem_json(problem) for problem in problems],
            }
        )
    else:
        print_problems(problems)
        if not exit_for(problems):
            click.echo(_success_text(loaded))
    context.exit(exit_for(problems))


def _find_problems(loaded: Documents, policies: Sequence[Policy]) -> Iterator[Problem]:
    yield from loaded.problems
    compiled = compile_documents(loaded.documents, {})
    for each in compiled:
        yield from _offline_problems(each)
    yield from violations(loaded.documents, compiled, {}, policies)


def _offline_problems(compiled: CompiledApplication) -> Iterator[Problem]:
    """Yield the problems that do not depend on the unknown counts of source topics."""
    has_unknown_counts = bool(compiled.missing_sources or compiled.source_patterns)
    for problem in compiled.problems:
        if not (has_unknown_counts and problem.code in _NEED_A_CLUSTER):
            yield problem
    declared = compiled.application.acls
    if declared is not None:
        yield from incomplete_needs(compiled, declared)


def _success_text(loaded: Documents) -> str:
    ids = [document.application.id for document in loaded.documents]
    return f"{len(ids)} application{'s are' if len(ids) != 1 else ' is'} valid: {', '.join(ids)}"
