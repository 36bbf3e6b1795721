"""Settings of a run that are not in the document."""

from pathlib import Path

import attrs

from headwater.kafka import Connection
from headwater.model.policies import Policy
from headwater_spark.driver.failures import RestartPolicy
from headwater_spark.driver.input.record_sizes import BYTES_AT_ONCE
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE

_CHECK_INTERVAL_SECONDS = 30.0


@attrs.frozen(kw_only=True)
class RunSettings:
    """How an application runs.

    `checkpoint` is a folder that driver and executors can reach, `state_folder` one on each worker's own
    disk. `records_at_once` and `bytes_at_once` limit a batch, or a step of one. `check_interval_seconds` is
    the time between full topic checks; whether the topics exist is checked each second.
    """

    connection: Connection
    checkpoint: str
    state_folder: Path
    records_at_once: int = RECORDS_AT_ONCE
    bytes_at_once: int = BYTES_AT_ONCE
    restarts: RestartPolicy = attrs.field(factory=RestartPolicy)
    check_interval_seconds: float = _CHECK_INTERVAL_SECONDS
    policies: tuple[Policy, ...] = ()
    """Policies that topics which the application creates, and expansions, must not violate."""
