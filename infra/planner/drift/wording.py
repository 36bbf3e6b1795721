"""Phrases that several findings share."""

from infra.model.compiled import InternalTopic
from infra.planner.actions import TopicAction
from infra.planner.wording import counted


def title(action: TopicAction) -> str:
    """Return the topic's name with what it is, to begin a sentence with."""
    return f"{'Internal' if isinstance(action.topic, InternalTopic) else 'Sink'} topic {action.name}"


def partitions(number: int) -> str:
    return counted(number, "partition")


def value(text: str | None) -> str:
    return "not set" if text is None else text
