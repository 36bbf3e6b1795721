"""Internal topics have fewer partitions than their sources now ask for, and autoscaling is off."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.wording import counted


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878 with the feature off: INCOMPLETE_SOURCE_TOPIC_METADATA, the application stops."""
    if application.config.autoscaling:
        return
    for state in application.internal:
        if state.live_partitions is not None and state.missing_partitions:
            yield _problem(application, state, state.live_partitions)


def _problem(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    is_pinned = isinstance(state.declared, InternalTopic) and state.declared.pinned
    return application.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than "
        + ("the count in the document asks for." if is_pinned else "its source topics ask for."),
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why="The application stops at its next rebalance: Kafka Streams finds the count of an existing "
        "internal topic wrong and does not add partitions itself.",
        fix="Set `partition.autoscaling.enabled: true` in the application's config to add the partitions. "
        + (f"Or declare {have} again." if is_pinned else "The source topics cannot be shrunk again."),
    )
