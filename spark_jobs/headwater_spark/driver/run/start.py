"""Start an application with its endpoint and log, from the options of its command line.

Only what Spark's JVM needs for its start is imported here: it starts while Python imports the rest.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import structlog

from headwater.command_line import Termination
from headwater.control import Access, ControlServer, Surface
from headwater.model.problems import ProblemsError
from headwater_spark.driver.metrics import Instruments, StartingApplication
from headwater_spark.driver.run import runtime_installed
from headwater_spark.driver.run.options import RunOptions, load_document
from headwater_spark.driver.spark_session.jvm import JvmStart, kill_jvm
from headwater_spark.driver.spark_session.requirements import start_problems
from headwater_spark.driver.spark_session.session import launch_jvm
from headwater_spark.driver.threads.stream_threads import configured_client_id

_log = structlog.get_logger(__name__)


def start_application(options: RunOptions) -> bool:
    """Run an application until it is stopped; return whether it ended without an error.

    Raises `ProblemsError` if it cannot start, or stopped because of an error; `click.ClickException` where a
    library is not installed.
    """
    options.configure_log()
    document = load_document(options.file)
    starting = StartingApplication(document.application.id)
    instruments = Instruments(starting, configured_client_id(document.application))
    session = options.session(starting.id)
    if wrong := start_problems(starting.id, master=session.master, conf=session.conf, environment=os.environ):
        raise ProblemsError(wrong)
    with (
        Termination(starting.id, options.stop_timeout_ms / 1_000, on_expiry=kill_jvm) as termination,
        _serve_endpoint(instruments, options.access()),  # at once: another process may use the port
        options.watch(instruments),
        JvmStart(partial(launch_jvm, session)) as jvm,
    ):
        with runtime_installed():
            from headwater_spark.driver.run.application_run import ApplicationRun  # noqa: PLC0415 - slow
        return ApplicationRun(options, document, session, jvm, starting, instruments, termination).run()
    return True  # SIGTERM arrived before Spark ran


@contextmanager
def _serve_endpoint(instruments: Instruments, access: Access | None) -> Iterator[None]:
    if access is None:
        yield
        return
    surface = Surface.create(instruments.client_id, host=socket.gethostname(), headwater=version("headwater"))
    with ControlServer(instruments.added_to(surface), access) as server:
        _log.info("endpoint started", url=server.url)
        yield
