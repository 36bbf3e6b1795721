"""PURE. The findings of `headwater doctor`: whether this machine, a stack and a cluster are ready.

Each module has the facts of one part, which `headwater.cli.doctor` observes, and decides what they mean.
"""

from headwater.doctor.findings import Finding, Section, Status, has_errors

__all__ = ["Finding", "Section", "Status", "has_errors"]
