"""Settings of topics that policies do not report where they differ: no run changes them."""

from collections.abc import Iterable, Sequence

import attrs

from headwater.model.compiled import InternalTopic
from headwater.model.policies import DriftTolerance, Policy, TopicClass
from headwater.model.topology import Sink
from headwater.planner.actions import TopicAction
from headwater.planner.policies.subject import chooses


def tolerances(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the policies about drift."""
    return tuple(policy for policy in policies if isinstance(policy.rule, DriftTolerance))


def without_ignored(
    application: str, actions: Iterable[TopicAction], policies: Sequence[Policy]
) -> tuple[TopicAction, ...]:
    """Return the actions without differences of ignored settings. What the run changes stays."""
    rules = [policy.rule for policy in tolerances(policies) if chooses(policy, application)]
    ignoring = [rule for rule in rules if isinstance(rule, DriftTolerance) and rule.ignored_settings]
    return tuple(_without_tolerated(action, ignoring) for action in actions) if ignoring else tuple(actions)


def _without_tolerated(action: TopicAction, rules: Iterable[DriftTolerance]) -> TopicAction:
    patterns = [
        name for rule in rules if topic_class(action.topic) in rule.classes for name in rule.ignored_settings
    ]
    left = tuple(change for change in action.drift if not _is_ignored(change.key, patterns))
    return attrs.evolve(action, drift=left)


def _is_ignored(key: str, patterns: Iterable[str]) -> bool:
    return any(
        key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern for pattern in patterns
    )


def topic_class(topic: InternalTopic | Sink | None) -> TopicClass:
    """Return the class by which policies select a topic."""
    return TopicClass(topic.kind.value) if isinstance(topic, InternalTopic) else TopicClass.MANAGED
