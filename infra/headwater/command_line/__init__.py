"""What the command lines of agent and runtime share: options, log, exit codes, and the end of the process."""

from headwater.command_line.gateway import GatewayWatch, gateway_port_of, spark_ended
from headwater.command_line.options import JobOptions, all_of, job_options
from headwater.command_line.program import run_program
from headwater.command_line.termination import RESTART, Termination

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
