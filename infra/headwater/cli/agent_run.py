"""`headwater agent run`: run an agent."""

import click

from headwater.agent.command import agent_options, run_agent


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
