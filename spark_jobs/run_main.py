"""The runtime as a program of its own: `spark-submit spark_jobs/run_main.py DOCUMENT`, or `python -m`.

The connection comes from HEADWATER_* or KAFKA_* variables, or from --bootstrap-server; master, jars and the
like from `spark-submit`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.entry_point import add_options, run_program
from spark_jobs.runtime.driver.sources import RECORDS_AT_ONCE
from spark_jobs.runtime.driver.start import RunOptions, start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application until it is stopped; return the exit code."""
    given = _parser().parse_args(arguments)
    return run_program(
        lambda connection: start(
            RunOptions(
                file=given.document,
                connection=connection,
                master=given.master,
                checkpoint=given.checkpoint,
                state_dir=given.state_dir,
                records_at_once=given.max_records,
                restarts=given.restarts,
                http=given.http,
                log_format=given.log_format,
                until_idle=given.until_idle,
            )
        ),
        given.bootstrap_server,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run the application of a topology document on Spark.")
    parser.add_argument("document", type=Path, help="a topology document")
    parser.add_argument("--master", help="else as spark-submit says")
    parser.add_argument("--checkpoint", metavar="DIR", help="a folder that driver and executors share")
    parser.add_argument(
        "--state-dir", metavar="DIR", type=Path, help="local state; on each worker's own disk"
    )
    parser.add_argument("--max-records", type=int, default=RECORDS_AT_ONCE, help="in a micro-batch, at most")
    parser.add_argument("--restarts", type=int, default=10, help="of a query that failed, in a row")
    parser.add_argument("--until-idle", action="store_true", help="end when everything has been processed")
    add_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
