"""`headwater describe`: print a topology as `Topology#describe()` does."""

from pathlib import Path

import click

from headwater.cli.console import exit_for, print_problems, write_text
from headwater.cli.options import output_option
from headwater.compiler import build_nodes
from headwater.describe import write_description
from headwater.kafka.command_line import NamedPath
from headwater.model.problems import ProblemCode
from headwater.model.topology import TopologyDocument
from headwater.spec import load_documents


@click.command()
@click.argument("file", type=NamedPath(path_type=Path))
@click.option("--application-id", metavar="ID", help="The application, if FILE has several.")
@output_option
@click.pass_context
def describe(context: click.Context, file: Path, application_id: str | None, output: Path | None) -> None:
    """Print Kafka Streams' description of a topology.

    Prints the same text as `Topology#describe()`, byte for byte, for comparison with an application.

    \b
    Examples:
      headwater describe orders.yaml
      headwater describe orders.yaml | diff - orders-app.describe.txt
    """
    loaded = load_documents([file])
    if exit_for(loaded.problems):
        print_problems(loaded.problems)
        context.exit(exit_for(loaded.problems))
    document = _choose_document(loaded.documents, application_id)
    if document.observed is not None:
        raise click.ClickException(
            f"{file} has the internal topics of {document.application.id}, but not its topology.\n"
            "  The application itself can print the text: topology.describe()"
        )
    nodes = build_nodes(document)
    # Details that an imported text does not have, such as retention, are not in the written text either.
    problems = [problem for problem in nodes.problems if problem.code is not ProblemCode.MISSING_DETAIL]
    if not exit_for(problems):
        write_text(write_description(nodes), output)
    print_problems((*loaded.problems, *problems))
    context.exit(exit_for(problems))


def _choose_document(documents: tuple[TopologyDocument, ...], application_id: str | None) -> TopologyDocument:
    ids = [document.application.id for document in documents]
    if application_id is None and len(documents) > 1:
        raise click.UsageError(
            f"FILE has {len(ids)} applications ({', '.join(ids)}). Choose one by --application-id."
        )
    for document in documents:
        if application_id in (None, document.application.id):
            return document
    raise click.UsageError(f"FILE has no application {application_id}. It has {', '.join(ids)}.")
