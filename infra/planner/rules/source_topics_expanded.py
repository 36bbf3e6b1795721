"""Internal topics have fewer partitions than their sources now ask for, and autoscaling is off."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation, TopicState
from infra.planner.wording import counted


def source_topics_expanded(situation: Situation) -> Iterator[Problem]:
    """KIP-878 with the feature off: INCOMPLETE_SOURCE_TOPIC_METADATA, the application stops."""
    if situation.config.autoscaling:
        return
    for state in situation.internal:
        if state.live is not None and state.lacking:
            yield _problem(situation, state, state.live.partitions)


def _problem(situation: Situation, state: TopicState, have: int) -> Problem:
    is_pinned = isinstance(state.wanted, InternalTopic) and state.wanted.pinned
    return situation.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than "
        + ("the count in the document asks for." if is_pinned else "its source topics ask for."),
        about=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why="The application stops at its next rebalance: Kafka Streams finds the count of an existing "
        "internal topic wrong and does not add partitions itself.",
        fix="Set `partition.autoscaling.enabled: true` in the application's config to add the partitions. "
        + (f"Or declare {have} again." if is_pinned else "The source topics cannot be shrunk again."),
    )
