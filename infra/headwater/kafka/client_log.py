"""Loggers for librdkafka, the Kafka client library.

Without a logger it writes to standard error. These loggers are outside the hierarchy of `logging`, so that no
configuration of the root logger sends their lines to standard error.
"""

import logging
from collections.abc import Callable


def client_log(handle: Callable[[str], object] | None = None) -> logging.Logger:
    """Return the `logger` of a client: it passes each line to `handle`, None: lines are dropped."""
    logger = logging.Logger("librdkafka")  # noqa: LOG001 - outside the hierarchy
    logger.addHandler(logging.NullHandler() if handle is None else _CallbackHandler(handle))
    return logger


class _CallbackHandler(logging.Handler):
    def __init__(self, handle: Callable[[str], object]) -> None:
        super().__init__()
        self._handle = handle

    def emit(self, record: logging.LogRecord) -> None:
        self._handle(record.getMessage())
