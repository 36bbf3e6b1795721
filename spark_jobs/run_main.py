"""The runtime as a program of its own: `spark-submit spark_jobs/run_main.py DOCUMENT`, or `python -m`."""

import sys
from collections.abc import Sequence

import click

from headwater.command_line import run_program
from headwater_spark.driver.run.command import run_application, runtime_options


@click.command("run_main.py")
@runtime_options(log_format="json", master=None)
def command(**options: object) -> int:
    """Run the application of a document on Spark, until stopped.

    Takes the options of `headwater run`, apart from those that spark-submit has itself. Without
    --bootstrap-server and --command-config the connection is read from HEADWATER_* or KAFKA_* variables.
    """
    return run_application(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application until it is stopped; return the exit code."""
    return run_program(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
