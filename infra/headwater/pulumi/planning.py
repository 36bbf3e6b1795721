"""The plan of a stack: read the cluster once, compile the documents, plan, and collect all problems."""

import time
from collections.abc import Callable

import attrs

from headwater.kafka import ClusterReader, Connection, KafkaClusterReader
from headwater.model.problems import Problem, ProblemsError
from headwater.model.records import StackIdentity
from headwater.operations.observation import observe_cluster
from headwater.operations.planning import plan_documents
from headwater.planner import Plan
from headwater.planner.run import Run
from headwater.planner.upgrade import with_recorded_versions
from headwater.pulumi.settings import StackSettings
from headwater.pulumi.stack_state import StackState


@attrs.frozen
class Planned:
    """`plan` is None if the cluster could not be read; `problems` include those of the settings."""

    plan: Plan | None
    problems: tuple[Problem, ...]
    run: Run | None = None
    """What the plan was made of, to check deletions again with the evidence of a later time."""


def plan_stack(
    settings: StackSettings,
    state: StackState,
    reader_for: Callable[[Connection], ClusterReader] = KafkaClusterReader,
    *,
    stack: StackIdentity | None = None,
) -> Planned:
    """Return the plan; errors that a user can fix are in `problems`.

    With a `stack`, the ownership records of the cluster are compared.
    """
    started = time.monotonic()
    if settings.connection is None:
        return Planned(None, settings.problems)
    try:
        observed = observe_cluster(
            reader_for(settings.connection),
            with_recorded_versions(settings.documents, state.records),
            state.records,
            with_ownership=settings.has_ownership_records and stack is not None,
        )
    except ProblemsError as error:
        return Planned(None, (*settings.problems, *error.problems))
    policy = attrs.evolve(settings.policy, stack=stack)
    planned = plan_documents(observed, policy, round((time.monotonic() - started) * 1000))
    run = Run(observed.compiled, (), observed.snapshot, state.records, policy)
    return Planned(planned, (*settings.problems, *planned.problems), run)
