"""The runtime as a program of its own: `spark-submit spark_jobs/run_main.py DOCUMENT`, or `python -m`.

The connection comes from HEADWATER_* or KAFKA_* variables, or from --bootstrap-server; master, jars and the
like from `spark-submit`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.model.problems import ProblemsError
from infra.observe import Connection
from spark_jobs.runtime.start import RunOptions, start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application until it is stopped; return the exit code."""
    given = _parser().parse_args(arguments)
    environment = dict(os.environ)
    if given.bootstrap_server is not None:
        environment["HEADWATER_BOOTSTRAP_SERVERS"] = given.bootstrap_server
    try:
        is_well = start(
            RunOptions(
                file=given.document,
                connection=Connection.from_environment(environment),
                master=given.master,
                checkpoint=given.checkpoint,
                state_dir=given.state_dir,
                http=given.http,
                log_format=given.log_format,
                until_idle=given.until_idle,
            )
        )
    except ProblemsError as error:
        from infra.report.problem_text import problems_text  # noqa: PLC0415 - only when something is wrong

        sys.stderr.write(problems_text(error.problems) + "\n")
        return 1
    return 0 if is_well else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run the application of a topology document on Spark.")
    parser.add_argument("document", type=Path, help="a topology document")
    parser.add_argument("--bootstrap-server", help="else HEADWATER_BOOTSTRAP_SERVERS")
    parser.add_argument("--master", help="else as spark-submit says")
    parser.add_argument("--checkpoint", metavar="DIR", help="a folder that driver and executors share")
    parser.add_argument(
        "--state-dir", metavar="DIR", type=Path, help="local state; on each worker's own disk"
    )
    parser.add_argument("--http", metavar="HOST:PORT", help="serve metrics, health and status here")
    parser.add_argument("--log-format", choices=("console", "json"), default="json")
    parser.add_argument("--until-idle", action="store_true", help="end when everything has been processed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
