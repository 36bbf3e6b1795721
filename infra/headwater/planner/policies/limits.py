"""Policies about names, about partition counts, and about the amount of changes in one run."""

from collections.abc import Iterator, Mapping

from headwater.model.policies import (
    ApplicationPartitions,
    BlastRadius,
    Effect,
    Named,
    NamedResources,
    Naming,
    Policy,
    TopicClass,
    TopicPartitions,
)
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.phrases import counted
from headwater.planner.plans import ActionKind
from headwater.planner.policies.subject import (
    PolicyTopic,
    Subject,
    applies_to,
    bounds_text,
    matches_pattern,
    policy_violation,
)
from headwater.planner.run import Run
from headwater.planner.settings import removing_changes

_NAMED_THINGS = {
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


def check_naming(rule: Naming, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield a violation for each name. `namedResources` checks names that Kafka Streams generated."""
    for name, topic in dict(_names_of(rule.of, subject)).items():
        if not matches_pattern(rule.pattern, name):
            yield policy_violation(
                policy,
                subject,
                f"{_NAMED_THINGS[rule.of]} {name} does not match the pattern.",
                topic=topic,
                node=name,
                expected=rule.pattern,
                found=name,
                why="Teams, quotas and ACLs are distinguished by names that follow a pattern.",
                fix=_FIXES[rule.of],
            )


def _names_of(of: Named, subject: Subject) -> Iterator[tuple[str, PolicyTopic | None]]:
    if of is Named.APPLICATION:
        yield subject.application.id, None
        return
    for topic in subject.topics:
        if topic.topic_class is _CLASSES[of] and not topic.is_generated:
            yield topic.own_name, topic
    if of is Named.STORE:
        for store in subject.unlogged_stores:
            yield store, None


def named_resources(rule: NamedResources, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations. KIP-1111 as a policy, for foreign-key joins and table aggregations as well."""
    del rule
    for topic in subject.topics:
        if topic.is_generated:
            yield policy_violation(
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


def topic_partitions(rule: TopicPartitions, policy: Policy, subject: Subject) -> Iterator[Problem]:
    """Yield violations of the counts after the run."""
    for topic in subject.topics:
        count = topic.partitions
        if topic.topic_class in rule.classes and count is not None and not rule.bounds.holds(count):
            is_too_many = rule.bounds.most is not None and count > rule.bounds.most
            yield policy_violation(
                policy,
                subject,
                f"{topic.title} has {counted(count, 'partition')}.",
                topic=topic,
                expected=f"{bounds_text(rule.bounds)} partitions",
                found=f"{count}",
                why=_TOO_MANY_PARTITIONS if is_too_many else _TOO_FEW_PARTITIONS,
                fix=f"{_FEWER if is_too_many else _MORE}{_READ_AT_START if subject.is_expansion else ''}",
            )


_READ_AT_START = (
    " An agent and a running application read the policies when they start: start them again with the "
    "changed file."
)
_FEWER = (
    "Its count follows the source topics. Before the first setup, call repartition() with `partitions` in "
    "front of the operator. Later, have the limit raised for this application."
)
_MORE = (
    "Before the first setup, add partitions to the source topics, or call repartition() with a larger "
    "explicit count in front of the operator. Later, an application with state cannot expand its topics "
    "without moving keys away from the state (UnsafeExpansion): have the limit lowered for it."
)
_TOO_MANY_PARTITIONS = (
    "Each partition costs memory, open files and failover time, and Kafka cannot remove partitions."
)
_TOO_FEW_PARTITIONS = (
    "The number of partitions limits the number of parallel tasks. Adding partitions later moves keys."
)


def application_partitions(
    rule: ApplicationPartitions, policy: Policy, subject: Subject
) -> Iterator[Problem]:
    """Yield a violation. Nothing is checked unless all counts are known."""
    counts = [topic.partitions for topic in subject.topics if topic.topic_class in rule.classes]
    known = [count for count in counts if count is not None]
    if not counts or len(known) < len(counts) or rule.bounds.holds(sum(known)):
        return
    total = sum(known)
    yield policy_violation(
        policy,
        subject,
        f"The topics of {subject.application.id} have {counted(total, 'partition')} in total.",
        expected=f"{bounds_text(rule.bounds)} partitions",
        found=f"{total} in {counted(len(counts), 'topic')}",
        why="An application that uses a large part of the cluster's capacity endangers all others.",
        fix="Remove repartitions and stores that are not needed, or have the limit raised for this "
        f"application.{_READ_AT_START if subject.is_expansion else ''}",
    )


_EFFECTS = {
    Effect.CREATED_TOPICS: ("new topic", ""),
    Effect.ADDED_PARTITIONS: ("new partition", ""),
    Effect.RECREATED_TOPICS: ("topic", " re-created after a loss"),
    Effect.DELETED_TOPICS: ("deleted topic", ""),
    Effect.REMOVING_SETTINGS: ("topic", " with settings that remove records"),
}
"""Effect → what is counted, and what follows in its phrase: `2 topics re-created after a loss`."""
_WHY = {
    Effect.RECREATED_TOPICS: "The data of the topics is lost. Usually so many at once mean that this is "
    "another cluster, or that an outage is not over.",
    Effect.REMOVING_SETTINGS: "Kafka removes records that it keeps now. They cannot be restored.",
    Effect.DELETED_TOPICS: "Their data is lost permanently. Usually so many at once mean wrong documents.",
}
_TOO_MANY_CHANGES = (
    "Usually so many at once are a mistake in a document. They also put load on the cluster's controller."
)


def blast_radius(rule: BlastRadius, policy: Policy, run: Run) -> Iterator[Problem]:
    """Stop typing errors in counts, and wrong sets of documents."""
    effects = _count_effects(policy, run)
    for effect, limit in rule.limits.items():
        number = effects[effect]
        if number > limit:
            yield exceeded_limit(policy, effect, limit, number)


def exceeded_limit(
    policy: Policy, effect: Effect, limit: int, number: int, *, is_plan: bool = True
) -> Problem:
    """Return the problem for a run that has an effect more often than the policy allows.

    Without `is_plan`, an agent, an application or a command would change the topics of one application.
    """
    noun, rest = _EFFECTS[effect]
    found = f"{counted(number, noun)}{rest}"
    return Problem(
        code=ProblemCode.BLAST_RADIUS,
        summary=f"This run would result in {found}, more than allowed for one run.",
        expected=f"at most {counted(limit, noun)}{rest}",
        found=found,
        why=policy.message or _WHY.get(effect, _TOO_MANY_CHANGES),
        fix=f"Check the plan. If it is intended, raise `{_setting_of(policy, effect)}` for this run"
        f"{', or change the applications one after another' if limit else ''}."
        if is_plan
        else f"If it is intended, raise `{_setting_of(policy, effect)}`.{_READ_AT_START}",
        location=policy.at,
        severity=policy.severity,
    )


def _count_effects(policy: Policy, run: Run) -> Mapping[Effect, int]:
    owners = {state.name: application.id for application in run.active for state in application.topics}
    actions = [
        action
        for action in run.actions
        if _is_chosen(policy, owners.get(action.name)) and action.topic is not None
    ]
    created = [action for action in actions if action.live is None]
    return {
        Effect.CREATED_TOPICS: len(created),
        Effect.ADDED_PARTITIONS: sum(action.partitions for action in created)
        + sum(action.added_partitions for action in actions),
        Effect.RECREATED_TOPICS: sum(action.kind is ActionKind.RECREATE for action in actions),
        Effect.DELETED_TOPICS: len(_deleted_topics(policy, run)),
        Effect.REMOVING_SETTINGS: sum(
            bool(removing_changes(action.live, action, run.snapshot.topic_defaults))
            for action in actions
            if action.live is not None
        ),
    }


def _deleted_topics(policy: Policy, run: Run) -> frozenset[str]:
    """Return the topics of retired applications, and left-over topics, that the run deletes."""
    retired = {
        topic.name
        for record in run.deleted
        if _is_chosen(policy, record.application_id)
        for topic in record.topics.values()
        if not topic.is_sink
    }
    left = {
        name
        for application in run.active
        if _is_chosen(policy, application.id)
        for name in application.compiled.application.leftovers.delete
    }
    return frozenset((retired | left) & run.snapshot.topics.keys())


def _is_chosen(policy: Policy, application_id: str | None) -> bool:
    return policy.applications is None if application_id is None else applies_to(policy, application_id)


def _setting_of(policy: Policy, effect: Effect) -> str:
    return policy.key if policy.key.startswith("headwater:") else effect.value
