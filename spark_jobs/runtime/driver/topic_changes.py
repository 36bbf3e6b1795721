"""PURE. What an application makes or alters of its topics, and what it says where it may not."""

from collections.abc import Mapping

import attrs

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode
from infra.planner import ActionKind, TopicAction

_MADE = (ActionKind.CREATE, ActionKind.RECREATE)


@attrs.frozen
class Change:
    """`infra.change.TopicChange`."""

    name: str
    create: bool
    partitions: int | None
    replication_factor: int
    config: Mapping[str, str | None]


def is_missing(action: TopicAction) -> bool:
    return action.kind in _MADE


def change_of(action: TopicAction) -> Change | None:
    """Return what an application does by itself, None = nothing.

    Partitions of a topic that exists are added by the agent, which knows when.
    """
    create = is_missing(action)
    settings = {change.key: change.wanted for change in action.changes}
    if not create and not (settings and isinstance(action.topic, InternalTopic)):
        return None
    return Change(
        name=action.name,
        create=create,
        partitions=action.partitions if create else None,
        replication_factor=action.replication_factor,
        config=action.config if create else settings,
    )


def not_set_up(application: str, action: TopicAction) -> Problem:
    topic = action.topic
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {action.name} does not exist.",
        application=application,
        topic=action.name,
        node=topic.node if isinstance(topic, InternalTopic) else None,
        expected=f"a topic with {action.partitions} partitions",
        found="none",
        why="With `internal.topics.setup: manual` an application never makes its internal topics: one that "
        "is missing may have been lost.",
        fix="Set it up by `pulumi up`, or restore it if it was there. `internal.topics.setup: automatic` "
        "has the application make it.",
    )


def not_changed(application: str, text: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary="An internal topic could not be set up.",
        application=application,
        expected="leave to create topics and to alter their settings",
        found=text,
        why="The application would lose state or records.",
        fix="Grant what the broker asks for, or set the topics up by `pulumi up`.",
    )


def not_there(application: str, topic: str) -> Problem:
    return Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {topic} was set up and is not there.",
        application=application,
        topic=topic,
        expected="a topic that stays",
        found="none",
        why="Somebody deletes it, or the brokers do not agree on their topics. A running application sets it "
        "up again.",
        fix="Find out who deletes topics of this application.",
    )
