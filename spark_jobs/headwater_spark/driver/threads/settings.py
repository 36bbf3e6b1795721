"""The configs of stream threads: `num.stream.threads` and `uncaught.exception.handler`."""

from collections.abc import Iterator

from headwater.compiler.configs.table import read_config
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import Application
from headwater_spark.engine.program.settings import refused_setting
from headwater_spark.engine.program.user_code import is_class_name
from headwater_spark.stream_threads import UncaughtExceptionResponse

COUNT = "num.stream.threads"
HANDLER = "uncaught.exception.handler"
_ANSWERS = ", ".join(UncaughtExceptionResponse)


def stream_threads(application: Application) -> int | None:
    """Return the number of stream threads at the start; None = as many as Spark has slots."""
    found = read_config(application.config, COUNT, application.kafka_streams)
    return found if COUNT in application.config and isinstance(found, int) else None


def handler_name(application: Application) -> str | None:
    """Return the answer of the handler, or its class `module:Class`; None = not set."""
    return application.config.get(HANDLER, "").strip() or None


def shutdown_group(application: str) -> str:
    """Return the consumer group in which clients request that all clients of the application stop."""
    return f"{application}-shutdown"


def may_shut_down_application(application: Application) -> bool:
    """Return whether a failure may be answered with `shutdown-application`."""
    name = handler_name(application)
    if name is None:
        return False
    return fixed_response(name) in (None, UncaughtExceptionResponse.SHUTDOWN_APPLICATION)


def fixed_response(name: str) -> UncaughtExceptionResponse | None:
    """Return the answer that `name` is; None: it is a class."""
    return None if ":" in name else UncaughtExceptionResponse(name)


def thread_problems(application: Application) -> Iterator[Problem]:
    """Yield a problem for each value that is not allowed."""
    config = application.config
    count = stream_threads(application)
    if count is not None and count < 1:
        yield refused_setting(
            application,
            COUNT,
            "a whole number of at least 1",
            "Without a stream thread no record is processed.",
            f"Set {COUNT} to a number of at least 1, or remove it: then there are as many threads as Spark "
            "has slots.",
        )
    if HANDLER in config and not _is_handler(config[HANDLER]):
        yield refused_setting(
            application,
            HANDLER,
            f"{_ANSWERS}, or module:Class",
            "It determines what happens when a stream thread fails, so there is no default for an unknown "
            "value.",
            f"Set {HANDLER} to one of these values, or remove it: then threads are replaced as often as "
            "--restarts allows.",
        )


def handler_not_loaded(application: Application, name: str, found: str) -> Problem:
    """Return the problem that the class of the handler cannot be used."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"The class {name} of {HANDLER} cannot be used.",
        expected="a class that Python can import on the driver, a subclass of UncaughtExceptionHandler",
        found=found,
        why="The first failure of a stream thread could not be handled.",
        fix="Correct the name or the class (headwater_spark/stream_threads.py), or make the module available "
        "on the driver by PYTHONPATH.",
        location=application.locate_config(HANDLER),
    )


def _is_handler(text: str) -> bool:
    text = text.strip()
    return text in tuple(UncaughtExceptionResponse) or is_class_name(text)
