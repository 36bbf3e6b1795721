"""Patterns for names that users choose."""

from collections.abc import Iterator

from headwater.model.policies import Named, Naming, Policy, TopicClass
from headwater.model.problems import Problem
from headwater.planner.policies.patterns import matches
from headwater.planner.policies.subject import PolicyTopic, Subject
from headwater.planner.policies.violation import violation

_NOUNS = {
    Named.APPLICATION: "Application id",
    Named.STORE: "Store name",
    Named.REPARTITION: "Repartition name",
    Named.MANAGED_TOPIC: "Managed topic name",
}
_CLASSES = {
    Named.STORE: TopicClass.CHANGELOG,
    Named.REPARTITION: TopicClass.REPARTITION,
    Named.MANAGED_TOPIC: TopicClass.MANAGED,
}
_FIXES = {
    Named.APPLICATION: "Rename the application before it is first set up. Later, its topics, offsets and "
    "state stay behind under the old id (`renamedFrom`).",
    Named.STORE: "Rename the store before it is first set up. Later, its changelog topic stays behind.",
    Named.REPARTITION: "Rename the operator. Drain the old topic first: no operator reads it afterwards.",
    Named.MANAGED_TOPIC: "Rename the topic, also for its readers.",
}


def naming(rule: Naming, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield a violation for each name. `namedResources` checks names that Kafka Streams generated."""
    for name, topic in dict(_names(rule.of, subject)).items():
        if not matches(rule.pattern, name):
            yield violation(
                policy,
                subject,
                f"{_NOUNS[rule.of]} {name} does not match the pattern.",
                topic=topic,
                node=name,
                expected=rule.pattern,
                found=name,
                why="Teams, quotas and ACLs are distinguished by names that follow a pattern.",
                fix=_FIXES[rule.of],
            )


def _names(of: Named, subject: Subject) -> Iterator[tuple[str, PolicyTopic | None]]:
    if of is Named.APPLICATION:
        yield subject.application.id, None
        return
    for topic in subject.topics:
        if topic.topic_class is _CLASSES[of] and not topic.is_generated:
            yield topic.own_name, topic
    if of is Named.STORE:
        for store in subject.unlogged_stores:
            yield store, None
