"""How an application is run, beside what its document says."""

from pathlib import Path

import attrs

from infra.observe import Connection
from spark_jobs.runtime.driver.failures import RestartPolicy
from spark_jobs.runtime.driver.sources import RECORDS_AT_ONCE

_LOOK_SECONDS = 30.0


@attrs.frozen(kw_only=True)
class RunSettings:
    """`checkpoint` is a folder that the driver and Spark reach, `state_folder` one on each worker's own disk.

    `look_seconds` is how often the topics' settings are looked at; whether they are there is, once a second.
    """

    connection: Connection
    checkpoint: str
    state_folder: Path
    records_at_once: int = RECORDS_AT_ONCE
    restarts: RestartPolicy = attrs.field(factory=RestartPolicy)
    look_seconds: float = _LOOK_SECONDS
