"""Without autoscaling: internal topics have fewer partitions than their source topics now require."""

from collections.abc import Iterator

from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.phrases import counted


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878 without autoscaling: INCOMPLETE_SOURCE_TOPIC_METADATA stops the application."""
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
        + ("the document declares." if is_pinned else "its source topics require."),
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why="The application stops at its next rebalance: Kafka Streams checks the count of an existing "
        "internal topic and does not add partitions.",
        fix="To add the partitions, set `partition.autoscaling.enabled: true` in the application's config. "
        + (f"Or declare {have} again." if is_pinned else "Kafka cannot remove partitions of source topics."),
    )
