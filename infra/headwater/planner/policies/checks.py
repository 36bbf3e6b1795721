"""All checks of policies, in order, and the checks of an expansion.

Agent and runtime add partitions to topics that exist. They do not check names and settings of these topics:
they change none, and an application must not stop because a policy is new.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.policies import (
    ApplicationPartitions,
    BlastRadius,
    Effect,
    MinInsyncReplicas,
    NamedResources,
    Naming,
    Policy,
    ReplicationFactor,
    Retention,
    TopicConfig,
    TopicPartitions,
)
from headwater.model.problems import Problem, Severity, first_names
from headwater.planner.phrases import counted
from headwater.planner.policies.limits import (
    application_partitions,
    blast_radius,
    check_naming,
    exceeded_limit,
    named_resources,
    topic_partitions,
)
from headwater.planner.policies.subject import Subject, applies_to, declared_subject, planned_subject
from headwater.planner.policies.topic_settings import (
    check_retention,
    min_insync_replicas,
    replication_factor,
    topic_config,
)
from headwater.planner.run import Run

_MOST_TOPICS = 5
Check = Callable[[Any, Policy, Subject], Iterable[Problem]]

CHECKS: Mapping[type, Check] = {
    Naming: check_naming,
    TopicPartitions: topic_partitions,
    ApplicationPartitions: application_partitions,
    ReplicationFactor: replication_factor,
    MinInsyncReplicas: min_insync_replicas,
    Retention: check_retention,
    TopicConfig: topic_config,
    NamedResources: named_resources,
}


def check_application(subject: Subject, policies: Iterable[Policy]) -> Iterator[Problem]:
    """Yield a problem for each policy that the application does not follow, policy by policy."""
    for policy in policies:
        check = CHECKS.get(type(policy.rule))
        if check is not None and applies_to(policy, subject.application.id):
            yield from check(policy.rule, policy, subject)


def check_run(run: Run) -> Iterator[Problem]:
    """Yield problems of the whole run, then problems of its active applications as the run leaves them."""
    for policy in run.policy.policies:
        if isinstance(policy.rule, BlastRadius):
            yield from blast_radius(policy.rule, policy, run)
    if not run.policy.policies:
        return
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        subject = planned_subject(application.compiled, actions, run.snapshot)
        existing = {topic.name for topic in application.topics if topic.live is not None}
        for policy in run.policy.policies:
            yield from _group_existing(
                tuple(check_application(subject, (policy,))), policy, subject, existing
            )


_COUNTS = (TopicPartitions, ApplicationPartitions)


def expansion_violations(
    compiled: CompiledApplication,
    before: Mapping[str, int],
    after: Mapping[str, int],
    policies: Iterable[Policy],
) -> Iterator[Problem]:
    """Yield a problem for each policy that the expansion of an application violates.

    `before` is topic → partition count of the topics that exist, `after` of the topics that the expansion
    expands. Policies about other rules are skipped.
    """
    added = sum(count - before.get(topic, 0) for topic, count in after.items())
    if added <= 0:
        return
    subject = declared_subject(compiled)
    counts = {**before, **after}
    topics = tuple(
        attrs.evolve(topic, partitions=counts.get(topic.name, topic.partitions)) for topic in subject.topics
    )
    known = tuple(policies)
    counting = [policy for policy in known if isinstance(policy.rule, _COUNTS)]
    changed = attrs.evolve(subject, topics=topics, is_expansion=True)
    for problem in check_application(changed, counting):
        if problem.topic is None or problem.topic in after:
            yield problem
    yield from _exceeded_limits(compiled, known, {Effect.ADDED_PARTITIONS: added})


def creation_violations(
    compiled: CompiledApplication, topics: Collection[str], policies: Iterable[Policy]
) -> Iterator[Problem]:
    """Yield a problem for each policy that the creation of some internal topics violates."""
    known = tuple(policies)
    for problem in check_application(declared_subject(compiled), known):
        if problem.topic in topics:
            yield problem
    partitions = sum(topic.partitions for topic in compiled.internal_topics if topic.name in topics)
    numbers = {Effect.CREATED_TOPICS: len(topics), Effect.ADDED_PARTITIONS: partitions}
    yield from _exceeded_limits(compiled, known, numbers)


def _exceeded_limits(
    compiled: CompiledApplication, policies: Iterable[Policy], numbers: Mapping[Effect, int]
) -> Iterator[Problem]:
    """Yield a problem for each limit of one run that `numbers` exceed."""
    for policy in policies:
        if isinstance(policy.rule, BlastRadius) and applies_to(policy, compiled.application.id):
            for effect, number in numbers.items():
                limit = policy.rule.limits.get(effect)
                if limit is not None and number > limit:
                    yield exceeded_limit(policy, effect, limit, number, is_plan=False)


def _group_existing(
    problems: Sequence[Problem], policy: Policy, subject: Subject, existing: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of one policy and application, warnings about topics in `existing` as one."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.severity is not Severity.ERROR and problem.topic in existing:
            groups.setdefault((problem.why, problem.fix), []).append(problem)
    for problem in problems:
        group = groups.get((problem.why, problem.fix), [])
        if problem not in group or len(group) == 1:
            yield problem
        elif problem is group[0]:
            yield _for_all(group, policy, subject)


def _for_all(group: Sequence[Problem], policy: Policy, subject: Subject) -> Problem:
    first = group[0]
    topics = [f"{problem.topic} ({problem.found})" for problem in group]
    return Problem(
        code=first.code,
        summary=f"{counted(len(group), 'existing topic')} of {subject.application.id} "
        f"do not follow the policy {policy.key}.",
        application=first.application,
        expected=first.expected,
        found=first_names(topics, _MOST_TOPICS),
        why=first.why,
        fix=first.fix,
        location=subject.application.at,
        severity=first.severity,
    )
