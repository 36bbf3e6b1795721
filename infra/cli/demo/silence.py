"""A logger for clients whose brokers come and go: without one librdkafka writes to standard error."""

import logging


def silent() -> logging.Logger:
    logger = logging.Logger("librdkafka")  # noqa: LOG001 - not to be found by anybody else
    logger.addHandler(logging.NullHandler())
    return logger
