"""`headwater reshard --spark` as a program of its own: `spark-submit spark_jobs/reshard_main.py DOCUMENT`."""

import sys
from collections.abc import Sequence
from functools import partial

import click

from headwater.command_line import run_program
from headwater_spark.commands.reshard import SUBMITTED, reshard

_OF_SPARK_SUBMIT = {"on_spark": True, "master": SUBMITTED, "conf": (), "processes": None}

command = click.Command(
    "reshard_main.py",
    callback=partial(reshard.callback, **_OF_SPARK_SUBMIT) if reshard.callback else None,
    params=[each for each in reshard.params if each.name not in _OF_SPARK_SUBMIT],
    help="""Give a stopped application more partitions, and each key its state, in Spark jobs.

    Takes the options of `headwater reshard`, apart from --processes and the options that spark-submit has
    itself. Without --bootstrap-server and --command-config the connection is read from HEADWATER_* or
    KAFKA_* variables.
    """,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the reshard; return the exit code."""
    return run_program(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
