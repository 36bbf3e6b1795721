"""`headwater agent history`: show past expansions."""

from collections.abc import Iterator, Sequence

import click

from headwater.cli.console import print_json, print_line, print_problems
from headwater.cli.options import cluster_options
from headwater.control.logs import configure_log
from headwater.kafka import KafkaClusterReader
from headwater.kafka.command_line import AgentGroup, NamedCluster
from headwater.kafka.expansion_journal import coordination_topic, read_lines
from headwater.kafka.journal_lines import Change, PastExpansion, history_json, outcome_text, past_expansions
from headwater.model.problems import Problem
from headwater.report.markdown import printable


@click.command()
@cluster_options
@click.option("--application", metavar="ID", help="Only the expansions of this application.")
@click.option(
    "--group",
    type=AgentGroup(),
    default="default",
    show_default=True,
    help="The group of the agents.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def history(*, cluster: NamedCluster, application: str | None, group: str, form: str) -> None:
    """Show past expansions: topics, agent, time and reason.

    The history is in the topic headwater-agent-GROUP. It begins with the first expansion; nothing is deleted.

    \b
    Examples:
      headwater agent history --bootstrap-server localhost:9092
      headwater agent history --command-config client.properties --application orders-app --format json
    """
    configure_log()  # log lines go to standard error; programs read the output
    skipped = list[Problem]()
    connection, journal = cluster.connection(), coordination_topic(group)
    KafkaClusterReader(connection).partition_counts([journal])  # names what keeps brokers from answering
    lines = read_lines(connection, journal, "headwater-history", on_skipped=skipped.append)
    past = past_expansions(lines, application)
    if form == "json":
        print_json(history_json(past))
    else:
        print_line(
            "\n\n".join("\n".join(map(printable, _expansion_lines(each))) for each in past)
            or "No expansions yet."
        )
    print_problems(skipped, after_result=True)


def _expansion_lines(expansion: PastExpansion) -> Iterator[str]:
    yield f"{expansion.id}: {outcome_text(expansion)}"
    first, *_ = expansion.lines
    if first.reason:
        yield f"  why     {first.reason}"
    yield from _column_lines("source", [_growth_text(change) for change in expansion.sources])
    yield from _column_lines("topics", [_change_text(change, expansion) for change in expansion.topics])
    stages = []
    for line in expansion.lines:
        why = f": {line.reason}" if line.reason not in ("", first.reason) else ""
        stages.append(f"{line.at:%Y-%m-%d %H:%M:%S} UTC {line.stage} by {line.client_id} on {line.host}{why}")
    yield from _column_lines("when", stages)


def _column_lines(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"  {'' if number else title:7} {line}"


def _growth_text(change: Change) -> str:
    return f"{change.topic} {change.old} -> {change.new}"


def _change_text(change: Change, expansion: PastExpansion) -> str:
    """Return the change, with the agent if another one began the expansion."""
    if change.by in (None, expansion.lines[0].client_id):
        return _growth_text(change)
    return f"{_growth_text(change)} by {change.by}"
