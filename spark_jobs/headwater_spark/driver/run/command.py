"""The command line of the runtime: for `headwater run` and for `spark-submit` alike. Imports PySpark late."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.command_line import all_of, job_options
from headwater.control.logs import LogFormat
from headwater.kafka.command_line import NamedPath
from headwater_spark.driver.run import runtime_installed

F = TypeVar("F", bound=Callable[..., Any])


def runtime_options(*, log_format: LogFormat, master: str | None) -> Callable[[F], F]:
    """Return a decorator that adds the arguments and options that `run_application` takes.

    `master` is the default of `--master`; None: `spark-submit` says where Spark runs.
    """
    return all_of(
        click.argument("document", type=click.Path(exists=True, path_type=Path)),
        click.option(
            "--master",
            default=master,
            show_default=True,
            help="Where Spark runs." if master else "Where Spark runs; default: the master of spark-submit.",
        ),
        click.option(
            "--checkpoint",
            metavar="DIR",
            type=NamedPath(),
            help="A folder or URL that driver and executors share.",
        ),
        click.option(
            "--state-dir",
            type=NamedPath(file_okay=False, path_type=Path),
            help="Folder of local state, on the disk of each worker; default: state.dir of the application.",
        ),
        click.option(
            "--max-records",
            type=click.IntRange(min=1),
            help="Maximum number of records that are processed at once; default: 500,000.",
        ),
        click.option(
            "--max-bytes",
            type=click.IntRange(min=1),
            help="About how many bytes of records are processed at once; default: 256 MiB.",
        ),
        click.option(
            "--restarts",
            type=click.IntRange(min=0),
            default=10,
            show_default=True,
            help="How many times in a row a failed query is restarted; failures because no broker answers do "
            "not count.",
        ),
        click.option(
            "--until-idle",
            is_flag=True,
            help="Stop when all records are processed, and declared processors are added.",
        ),
        job_options(
            cluster="The cluster that the application runs on.",
            http="Serve metrics, health, status and control (threads, processors) at this address. On other "
            "addresses than loopback, control needs HEADWATER_CONTROL_TOKEN.",
            log_format=log_format,
        ),
    )


def run_application(options: Mapping[str, Any], **more: Any) -> int:  # noqa: ANN401 - fields of RunOptions
    """Run an application until it is stopped and return the exit code: 0, or 1 if it failed.

    `options` are the values of `runtime_options` by name, `more` are further fields of `RunOptions`. Raises
    `ProblemsError`, and `click.ClickException` where PySpark is not installed.
    """
    with runtime_installed():
        from headwater_spark.driver.run.options import RunOptions  # noqa: PLC0415 - imports PySpark
        from headwater_spark.driver.run.start import start_application  # noqa: PLC0415 - imports PySpark
    fields = {
        "file": options["document"],
        "connection": options["cluster"].connection(),
        "master": options["master"],
        "checkpoint": options["checkpoint"],
        "state_dir": options["state_dir"],
        "records_at_once": options["max_records"],
        "bytes_at_once": options["max_bytes"],
        "restarts": options["restarts"],
        "http": options["http"],
        "log_format": options["log_format"],
        "log_level": options["log_level"],
        "stop_timeout_ms": options["stop_timeout_ms"],
        "until_idle": options["until_idle"],
        "policy_files": options["policy_files"],
    }
    return 0 if start_application(RunOptions(**fields | more)) else 1
