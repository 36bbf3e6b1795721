"""Observes whether the documents of a stack follow its policies: as in the plan of a preview."""

from collections.abc import Sequence

import attrs

from headwater.cli.doctor.pulumi_stack import ObservedStack
from headwater.doctor.policies import PolicyFacts
from headwater.kafka import Connection
from headwater.model.policies import DriftTolerance
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.pulumi.planning import plan_stack

_NO_ANSWER = "the cluster did not answer"


def observe_policies(
    target: Connection, observed: ObservedStack, *, is_connected: bool = True
) -> PolicyFacts | None:
    """Plan the stack on the cluster of `target`; None if the settings of the stack are not known.

    Blocks on requests to the cluster, each with a timeout; with `is_connected` False, none is sent. Nothing
    is changed. With an error of the settings or documents, nothing is planned: a policy or a document may be
    missing.
    """
    if observed.settings is None or observed.state is None:
        return None
    rules = [each.rule for each in observed.settings.policy.policies]
    count = sum(not isinstance(rule, DriftTolerance) for rule in rules)
    if found := errors(observed.settings.problems):
        return PolicyFacts(policies=count, reason=_reason_of(found))
    if not count:
        return PolicyFacts(policies=0)
    if not is_connected:
        return PolicyFacts(policies=count, reason=_NO_ANSWER)
    try:
        planned = plan_stack(attrs.evolve(observed.settings, connection=target), observed.state)
    except ProblemsError as error:
        return PolicyFacts(policies=count, reason=_reason_of(error.problems))
    if planned.plan is None:
        return PolicyFacts(policies=count, reason=_reason_of(errors(planned.problems)))
    return PolicyFacts(policies=count, problems=planned.plan.problems)


def _reason_of(problems: Sequence[Problem]) -> str:
    """Return the summary of the first problem, with its location."""
    if not problems:
        return _NO_ANSWER
    where = f" ({problems[0].location})" if problems[0].location else ""
    return problems[0].summary + where
