"""Where librdkafka, the Kafka client library, tells what it does.

Without a logger it writes to standard error, and one that is found by its name may be sent there by whoever
sets logging up: these loggers stand outside the hierarchy.
"""

import logging
from collections.abc import Callable


def client_log(hear: Callable[[str], object] | None = None) -> logging.Logger:
    """Return a client's `logger`: `hear` gets each line, or nobody does."""
    logger = logging.Logger("librdkafka")  # noqa: LOG001 - outside the hierarchy
    logger.addHandler(logging.NullHandler() if hear is None else _Ear(hear))
    return logger


class _Ear(logging.Handler):
    def __init__(self, hear: Callable[[str], object]) -> None:
        super().__init__()
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(record.getMessage())
