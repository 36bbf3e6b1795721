"""Internal topics have fewer partitions than their sources now ask for, and autoscaling is off."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation


def source_topics_expanded(situation: Situation) -> Iterator[Problem]:
    """KIP-878 with the feature off: INCOMPLETE_SOURCE_TOPIC_METADATA, the application stops."""
    if situation.config.autoscaling:
        return
    for state in situation.internal:
        if state.live is None or not state.lacking:
            continue
        is_pinned = isinstance(state.wanted, InternalTopic) and state.wanted.pinned
        cause = "the count in the document" if is_pinned else "its source topics"
        yield situation.problem(
            ProblemCode.SOURCE_TOPICS_EXPANDED,
            f"Internal topic {state.name} has fewer partitions than {cause} ask{'s' if is_pinned else ''} "
            "for.",
            about=state,
            expected=f"{state.partitions} partitions",
            found=f"{state.live.partitions} partitions",
            why="The application stops at its next rebalance: Kafka Streams finds the count of an existing "
            "internal topic wrong and does not add partitions itself.",
            fix="Set `partition.autoscaling.enabled: true` in the application's config to expand the "
            "internal topics. The source topics cannot be shrunk again.",
        )
