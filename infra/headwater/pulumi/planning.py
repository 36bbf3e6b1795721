"""The plan of a stack: read the cluster once, compile the documents, plan, and collect all problems."""

import time
from collections.abc import Callable

import attrs

from headwater.compiler import compile_documents
from headwater.kafka import ClusterReader, Connection, KafkaClusterReader, snapshot_request
from headwater.kafka.evidence import with_evidence
from headwater.kafka.processor_state import with_processor_state
from headwater.kafka.visibility import check_visible
from headwater.model.ownership import StackIdentity
from headwater.model.problems import Problem, ProblemsError
from headwater.planner import Plan, plan
from headwater.planner.evidence.questions import evidence_request
from headwater.planner.run import Run
from headwater.planner.upgrade import compile_recorded, with_recorded_versions
from headwater.pulumi.settings import StackSettings
from headwater.pulumi.stack_state import StackState
from headwater.pulumi.unknown_replication import unknown_replication


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
        reader = reader_for(settings.connection)
        documents = with_recorded_versions(settings.documents, state.records)
        request = snapshot_request(documents, state.records)
        with_ownership = settings.has_ownership_records and stack is not None
        snapshot = reader.read(attrs.evolve(request, with_ownership=with_ownership))
        compiled = compile_documents(documents, snapshot.partitions)
        check_visible(reader, snapshot, compiled)
        snapshot = with_processor_state(reader, snapshot, compiled)
        snapshot = with_evidence(reader, snapshot, evidence_request(compiled, snapshot, state.records))
    except ProblemsError as error:
        return Planned(None, (*settings.problems, *error.problems))
    elapsed_ms = round((time.monotonic() - started) * 1000)
    policy = attrs.evolve(settings.policy, stack=stack)
    earlier = compile_recorded(documents, state.records, snapshot.partitions)
    planned = plan(compiled, snapshot, state.records, policy, elapsed_ms, earlier=earlier)
    problems = (*settings.problems, *planned.problems, *unknown_replication(planned))
    return Planned(planned, problems, Run(compiled, (), snapshot, state.records, policy))
