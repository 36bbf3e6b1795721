"""Check applications and runs against policies."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headwater.model.policies import (
    ApplicationPartitions,
    BlastRadius,
    MinInsyncReplicas,
    NamedResources,
    Naming,
    Policy,
    ReplicationFactor,
    Retention,
    TopicConfig,
    TopicPartitions,
)
from headwater.model.problems import Problem
from headwater.planner.policies.application_partitions import application_partitions
from headwater.planner.policies.blast_radius import blast_radius
from headwater.planner.policies.min_insync_replicas import min_insync_replicas
from headwater.planner.policies.named_resources import named_resources
from headwater.planner.policies.naming import naming
from headwater.planner.policies.patterns import chooses
from headwater.planner.policies.replication_factor import replication_factor
from headwater.planner.policies.retention import retention
from headwater.planner.policies.subject import Subject, planned
from headwater.planner.policies.topic_config import topic_config
from headwater.planner.policies.topic_partitions import topic_partitions
from headwater.planner.run import Run

Check = Callable[[Any, Policy, Subject], Iterable[Problem]]

CHECKS: Mapping[type, Check] = {
    Naming: naming,
    TopicPartitions: topic_partitions,
    ApplicationPartitions: application_partitions,
    ReplicationFactor: replication_factor,
    MinInsyncReplicas: min_insync_replicas,
    Retention: retention,
    TopicConfig: topic_config,
    NamedResources: named_resources,
}


def check_application(subject: Subject, policies: Iterable[Policy]) -> Iterator[Problem]:
    """Yield a problem for each policy that the application does not follow, policy by policy."""
    for policy in policies:
        check = CHECKS.get(type(policy.rule))
        if check is not None and chooses(policy, subject.application.id):
            yield from check(policy.rule, policy, subject)


def check_run(run: Run) -> Iterator[Problem]:
    """Yield the problems of the whole run, then those of its active applications as the run leaves them."""
    for policy in run.policy.policies:
        if isinstance(policy.rule, BlastRadius):
            yield from blast_radius(policy.rule, policy, run)
    if not run.policy.policies:
        return
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        subject = planned(application.compiled, actions, run.snapshot)
        yield from check_application(subject, run.policy.policies)
