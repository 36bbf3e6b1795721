"""How many processors an application has: the values that users' handlers read, too."""

from spark_jobs.processor_expansion import ExpansionPhase, ProcessorsStatus

__all__ = ["ExpansionPhase", "ProcessorsStatus"]
