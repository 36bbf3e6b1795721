"""The agent as a program of its own: `spark-submit spark_jobs/agent_main.py FILES...`, or `python -m`.

The agent is one process and needs no executors: in cluster mode it runs on the driver and restarts with it.
"""

import sys
from collections.abc import Sequence

import click

from headwater.agent.command import agent_options, run_agent
from headwater.command_line import run_program


@click.command("agent_main.py")
@agent_options(log_format="json")
def command(**options: object) -> int:
    """Expand internal topics when source topics are expanded, until stopped (KIP-878).

    Takes the options of `headwater agent run`. Without --bootstrap-server and --command-config the connection
    is read from HEADWATER_* or KAFKA_* variables.
    """
    return run_agent(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent until it is stopped; return the exit code."""
    return run_program(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
