"""Claim the applications of a run on the cluster before it changes anything, and record what it has done."""

from collections.abc import Mapping, Sequence

from headwater.kafka import ClusterReader
from headwater.model.problems import Problem, ProblemsError
from headwater.model.records import SetupRecord
from headwater.planner import Plan
from headwater.planner.claims import change_after, change_before, race, retraction
from headwater.planner.rules.ownership import refusal
from headwater.pulumi.cluster_writer import ClusterWriter


def claim_applications(plan: Plan, reader: ClusterReader, writer: ClusterWriter) -> Sequence[Problem]:
    """Write the ownership records of the run; return the problems that prevent the run.

    Two stacks may claim an application at the same time. Each of them reads the records again after it has
    written its own, so at least one finds the other's. It withdraws its records.
    """
    ownership = plan.ownership
    change = change_before(plan, ownership) if ownership is not None else None
    if ownership is None or not change:
        return ()
    try:
        writer.write_ownership(change)
        lost = race(change, ownership, ownership.reread(reader.ownership().records))
        if lost:
            writer.write_ownership(retraction(change, ownership))
    except ProblemsError as error:
        return error.problems
    return tuple(refusal(conflict, ownership) for conflict in lost)


def protect_records(plan: Plan, writer: ClusterWriter) -> Sequence[Problem]:
    """Change the settings of the topic of the records as planned; return the problems.

    A topic that is not compacted loses records, so this is an error. Without the other settings, the records
    of this stack are as safe as before: a warning.
    """
    changes = plan.ownership_settings
    return writer.configure_ownership(changes) if changes else ()


def record_ownership(plan: Plan, recorded: Mapping[str, SetupRecord], writer: ClusterWriter) -> None:
    """Write the ownership records after the run; `recorded` is application id → record with topic ids.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable.
    """
    if plan.ownership is not None and (change := change_after(plan, plan.ownership, recorded)):
        writer.write_ownership(change)
