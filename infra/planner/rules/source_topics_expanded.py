"""Without autoscaling: internal topics have fewer partitions than their sources or the document require."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.phrases import counted
from infra.planner.processors import has_own_count


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878 without autoscaling: INCOMPLETE_SOURCE_TOPIC_METADATA stops the application."""
    if application.config.autoscaling:
        return
    for state in application.internal:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.missing_partitions:
            is_explicit = application.has_explicit_count(state)
            yield (_raised if is_explicit else _expanded)(application, state, state.live_partitions)


def _expanded(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than its source topics require.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_WHY,
        fix=_ADD + "Kafka cannot remove partitions of source topics.",
    )


def _raised(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has fewer partitions than the explicit count of the document requires.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"{_ADD}Or declare {have} again.",
    )


_WHY = (
    "The application stops at its next rebalance: Kafka Streams checks the count of an existing internal "
    "topic and does not add partitions."
)
_ADD = "To add the partitions, set `partition.autoscaling.enabled: true` in the application's config. "
