"""Observes whether the documents of a stack follow its policies: as in the plan of a preview."""

from collections.abc import Sequence

import attrs

from headwater.cli.doctor.pulumi_stack import ObservedStack
from headwater.doctor.policies import PolicyFacts
from headwater.kafka import Connection
from headwater.model.policies import DriftTolerance
from headwater.model.problems import Problem, ProblemsError
from headwater.pulumi.planning import plan_stack


def observe_policies(target: Connection, observed: ObservedStack) -> PolicyFacts | None:
    """Plan the stack on the cluster of `target`; None if the settings of the stack are not known.

    Blocks on requests to the cluster, each with a timeout. Nothing is changed.
    """
    if observed.settings is None or observed.state is None:
        return None
    rules = [each.rule for each in observed.settings.policy.policies]
    count = sum(not isinstance(rule, DriftTolerance) for rule in rules)
    if not count:
        return PolicyFacts(policies=0)
    try:
        planned = plan_stack(attrs.evolve(observed.settings, connection=target), observed.state)
    except ProblemsError as error:
        return PolicyFacts(policies=count, reason=_first_summary(error.problems))
    if planned.plan is None:
        return PolicyFacts(policies=count, reason=_first_summary(planned.problems))
    return PolicyFacts(policies=count, problems=planned.plan.problems)


def _first_summary(problems: Sequence[Problem]) -> str:
    return problems[-1].summary if problems else "it does not answer"
