"""The version of the brokers of a test run.

`HEADWATER_KAFKA` names it; the default is the version of `headwater local`. With each version,
`make test-brokers` runs the tests with the mark `every_broker`.
"""

import os
from typing import Final

from headwater.toolchain.kafka import KAFKA_VERSION

BROKER_VERSION: Final = os.environ.get("HEADWATER_KAFKA") or KAFKA_VERSION


def has_streams_groups() -> bool:
    """Return whether brokers can have streams groups (KIP-1071)."""
    return _release() >= (4, 1)


def enables_streams_groups() -> bool:
    """Return whether new clusters have streams groups. In 4.1 they are early access."""
    return _release() >= (4, 2)


def can_be_cordoned() -> bool:
    """Return whether brokers can be excluded from new replicas (KIP-1066)."""
    return _release() >= (4, 3)


def _release() -> tuple[int, int]:
    major, minor, *_ = BROKER_VERSION.split(".")
    return int(major), int(minor)
