"""Limits for what one run changes."""

from collections.abc import Iterator, Mapping

from headwater.model.policies import BlastRadius, Effect, Policy
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.actions import ActionKind
from headwater.planner.phrases import counted
from headwater.planner.policies.patterns import chooses
from headwater.planner.run import Run
from headwater.planner.settings import removing_changes

_NOUNS = {
    Effect.CREATED_TOPICS: "new topic",
    Effect.ADDED_PARTITIONS: "new partition",
    Effect.RECREATED_TOPICS: "topic re-created after a loss",
    Effect.DELETED_TOPICS: "deleted topic",
    Effect.REMOVING_SETTINGS: "topic with settings that remove records",
}
_WHY = {
    Effect.RECREATED_TOPICS: "The data of the topics is lost. Usually so many at once mean that this is "
    "another cluster, or that an outage is not over.",
    Effect.REMOVING_SETTINGS: "Kafka removes records that it keeps now. They cannot be restored.",
    Effect.DELETED_TOPICS: "Their data is lost permanently. Usually so many at once mean wrong documents.",
}
_TOO_MANY = (
    "Usually so many at once are a mistake in a document. They also put load on the cluster's controller."
)


def blast_radius(rule: BlastRadius, policy: Policy, run: Run) -> Iterator[Problem]:
    """Stop typing errors in counts, and wrong sets of documents."""
    effects = _effects(policy, run)
    for effect, limit in rule.limits.items():
        number = effects[effect]
        if number > limit:
            yield exceeded(policy, effect, limit, number)


def exceeded(policy: Policy, effect: Effect, limit: int, number: int) -> Problem:
    """Return the problem for a run that has an effect more often than the policy allows."""
    noun = _NOUNS[effect]
    return Problem(
        code=ProblemCode.BLAST_RADIUS,
        summary=f"This run would result in {_many(number, noun)}, more than allowed for one run.",
        expected=f"at most {_many(limit, noun)}",
        found=_many(number, noun),
        why=policy.message or _WHY.get(effect, _TOO_MANY),
        fix=f"Check the plan. If it is intended, raise `{_setting(policy, effect)}` for this run, or "
        "change the applications one after another.",
        location=policy.at,
        severity=policy.severity,
    )


def _effects(policy: Policy, run: Run) -> Mapping[Effect, int]:
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
    return policy.applications is None if application_id is None else chooses(policy, application_id)


def _many(number: int, noun: str) -> str:
    """Put the noun first in its phrase: `2 topics re-created after a loss`."""
    if noun.startswith("topic "):
        return f"{counted(number, 'topic')}{noun.removeprefix('topic')}"
    return counted(number, noun)


def _setting(policy: Policy, effect: Effect) -> str:
    return policy.key if policy.key.startswith("headwater:") else effect.value
