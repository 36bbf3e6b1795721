"""What the programs for `spark-submit` have in common: the connection, problems told, the exit code."""

import argparse
import os
import sys
from collections.abc import Callable

from infra.model.problems import ProblemsError
from infra.observe import Connection


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what `run_program` and the log want to be told."""
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="else HEADWATER_BOOTSTRAP_SERVERS"
    )
    parser.add_argument("--http", metavar="HOST:PORT", help="serve metrics, health and status here")
    parser.add_argument("--log-format", choices=("console", "json"), default="json")


def run_program(program: Callable[[Connection], bool], bootstrap_server: str | None) -> int:
    """Run it on the connection that HEADWATER_* or KAFKA_* variables name; return the exit code."""
    environment = dict(os.environ)
    if bootstrap_server is not None:
        environment["HEADWATER_BOOTSTRAP_SERVERS"] = bootstrap_server
    try:
        is_well = program(Connection.from_environment(environment))
    except ProblemsError as error:
        from infra.report.problem_text import problems_text  # noqa: PLC0415 - only when something is wrong

        sys.stderr.write(problems_text(error.problems) + "\n")
        return 1
    return 0 if is_well else 1
