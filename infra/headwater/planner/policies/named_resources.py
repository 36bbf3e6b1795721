"""No internal topic may have a generated name."""

from collections.abc import Iterator

from headwater.model.policies import NamedResources, Policy
from headwater.model.problems import Problem
from headwater.planner.policies.subject import Subject
from headwater.planner.policies.violation import violation


def named_resources(rule: NamedResources, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. KIP-1111 as a policy, for foreign-key joins and table aggregations as well."""
    del rule
    for topic in subject.topics:
        if topic.is_generated:
            yield violation(
                policy,
                subject,
                f"{topic.title} has a generated name.",
                topic=topic,
                expected="a name of your own",
                found=topic.own_name,
                why="The next change of the topology can shift its number. The operator then uses a topic of "
                "another name: an empty one, or one with another operator's data.",
                fix="Name the operator or the store before the application is first set up. Later, any other "
                "name starts with an empty topic: have the application excluded from the policy "
                "(`applications`).",
            )
