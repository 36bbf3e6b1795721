"""Log lines on standard error, for people or as JSON, with secrets redacted."""

import logging
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import structlog

from headwater.control.redaction import REDACTED, redact

LogFormat = Literal["console", "json"]
"""Lines for people, or JSON objects."""
LEVELS = ("debug", "info", "warning", "error")
_SECRET_NAMES = ("password", "secret", "token", "authorization", "private_key", "passphrase")


def configure_log(form: LogFormat = "console", level: str = "info", secrets: Sequence[str] = ()) -> None:
    """Set structlog up for the process.

    Args:
        form: lines for people or JSON objects.
        level: the lowest level that is logged, one of `LEVELS`.
        secrets: texts that never show (`redaction.redacted_texts`), wherever in a line they are.
    """
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,  # a text, so that secrets in it are redacted
            _Redaction(secrets),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=False,
    )


class _StandardError:
    """Prints lines to standard error, and ignores that its reader has gone: the job continues without a log.

    With `spark-submit`, the reader is Spark's JVM. If it dies, the line that says so must not fail the thread
    that stops the job.
    """

    def msg(self, message: str) -> None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - this is the log

    log = debug = info = warning = error = critical = exception = msg


class _Redaction:
    """Redacts values whose name is that of a secret, and secrets inside texts."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets

    def __call__(self, _: object, __: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        return {name: self._redacted(name, value) for name, value in line.items()}

    def _redacted(self, name: str, value: object) -> object:
        if value is not None and any(word in name.lower() for word in _SECRET_NAMES):
            return REDACTED
        match value:
            case str():
                return redact(value, self._secrets)
            case Mapping():
                return {key: self._redacted(str(key), inner) for key, inner in value.items()}
            case list() | tuple():
                return [self._redacted("", inner) for inner in value]
            case None | bool() | int() | float():
                return value
            case _:
                return self._redacted("", repr(value))
