"""Policies about what an expansion changes: the partition counts of topics, and how many it adds.

Agent and runtime add partitions to topics that exist. They do not check names and settings of these topics:
they change none, and an application must not stop because a policy is new.
"""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.policies import ApplicationPartitions, BlastRadius, Effect, Policy, TopicPartitions
from headwater.model.problems import Problem
from headwater.planner.policies.blast_radius import exceeded
from headwater.planner.policies.checks import check_application
from headwater.planner.policies.patterns import chooses
from headwater.planner.policies.subject import declared

_COUNTS = (TopicPartitions, ApplicationPartitions)


def expansion_violations(
    compiled: CompiledApplication,
    before: Mapping[str, int],
    after: Mapping[str, int],
    policies: Iterable[Policy],
) -> Iterator[Problem]:
    """Yield a problem for each policy that the expansion of an application violates.

    Args:
        compiled: the application.
        before: topic → partition count, of the topics that exist.
        after: topic → partition count, of the topics that the expansion expands.
        policies: the policies. Those about other rules are skipped.
    """
    added = sum(count - before.get(topic, 0) for topic, count in after.items())
    if added <= 0:
        return
    subject = declared(compiled)
    counts = {**before, **after}
    topics = tuple(
        attrs.evolve(topic, partitions=counts.get(topic.name, topic.partitions)) for topic in subject.topics
    )
    known = tuple(policies)
    counting = [policy for policy in known if isinstance(policy.rule, _COUNTS)]
    for problem in check_application(attrs.evolve(subject, topics=topics), counting):
        if problem.topic is None or problem.topic in after:
            yield problem
    for policy in known:
        if isinstance(policy.rule, BlastRadius) and chooses(policy, compiled.application.id):
            limit = policy.rule.limits.get(Effect.ADDED_PARTITIONS)
            if limit is not None and added > limit:
                yield exceeded(policy, Effect.ADDED_PARTITIONS, limit, added)
