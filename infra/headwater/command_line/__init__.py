"""What the command lines of agent and runtime share: options, log, exit codes, and the end of the process."""

from headwater.command_line.options import JobOptions, all_of, job_options
from headwater.command_line.termination import (
    RESTART,
    GatewayWatch,
    Termination,
    gateway_port_of,
    run_program,
    spark_ended,
)

__all__ = [
    "RESTART",
    "GatewayWatch",
    "JobOptions",
    "Termination",
    "all_of",
    "gateway_port_of",
    "job_options",
    "run_program",
    "spark_ended",
]
