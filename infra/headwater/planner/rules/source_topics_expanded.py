"""Without autoscaling: internal topics have fewer partitions than their sources or the document require."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import delete_topic, expected_partitions, how_to_expand
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import counted
from headwater.planner.processors import has_own_count


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878 without autoscaling: INCOMPLETE_SOURCE_TOPIC_METADATA stops the application."""
    if application.config.autoscaling:
        return
    for state in application.internal:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.missing_partitions:
            if application.has_explicit_count(state):
                yield _raised(application, state, state.live_partitions)
            elif state.recorded_partitions is not None:
                yield _expanded(application, state, state.live_partitions)
            else:
                yield _too_few(application, state, state.live_partitions)


def _expanded(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than its source topics require.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"{how_to_expand(application)} Kafka cannot remove partitions of source topics.",
    )


def _raised(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has fewer partitions than the explicit count of the document requires.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"Declare {have} again. {how_to_expand(application)}",
    )


def _too_few(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    """Return the problem of a topic of which no record says that it ever had the right count."""
    unknown = application.caller.knows_setup
    return application.problem(
        ProblemCode.UNDER_PARTITIONED,
        f"{state.title} has fewer partitions than "
        f"required{': Headwater did not set it up' if unknown else ''}.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=f"{_WHY} Either its source topics were expanded, or a broker created it automatically, with the "
        "default partition count.",
        fix=_without_record(application, state),
    )


def _without_record(application: CountedApplication, state: CountedTopic) -> str:
    deletion = delete_topic(application, state)
    if state.live_records == 0:
        return f"The topic is empty: {deletion}"
    expansion = how_to_expand(application)
    if state.live_records is not None:
        return f"{expansion} If its records are not needed, {deletion}"
    offsets = f"`kafka-get-offsets.sh --bootstrap-server BROKER --topic {state.name}`"
    return f"If the topic is empty ({offsets}), {deletion} Otherwise: {expansion}"


_WHY = (
    "The application stops at its next rebalance: Kafka Streams checks the count of an existing internal "
    "topic and does not add partitions."
)
