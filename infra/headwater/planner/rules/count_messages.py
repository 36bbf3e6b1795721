"""Problems of partition counts."""

from collections.abc import Sequence

from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import (
    AUTOSCALING,
    deciding_sources,
    delete_topic,
    expected_partitions,
    how_to_expand,
    moves_keys,
    topics_below,
)
from headwater.planner.counts import CONTINUE_RESHARD, RESHARDED, CountedApplication, CountedTopic
from headwater.planner.phrases import counted, listed

_WHY = (
    "The application stops at its next rebalance: Kafka Streams checks the count of an existing internal "
    "topic and does not add partitions."
)
_IRREVERSIBLE = "Kafka cannot remove partitions, and replacing the topic would lose its data."
_REFUSED = " The application does not start if an internal topic has another count than expected."
_DRAIN = "If the application has processed all records of the topic (no lag in it), or they are not needed,"
COPY = (
    "To keep the state, copy the records of each partition that is expected. Then, or if the state is not "
    "needed,"
)
RESTORE = "Write the copies to the same partitions before the application starts again."


def expanded_sources(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than its source topics require.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"{how_to_expand(application, follows_sources=True)} Kafka cannot remove partitions of source "
        "topics.",
    )


def raised_count(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has fewer partitions than the explicit count of the document requires.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"Declare {have} again. {how_to_expand(application)}",
    )


def too_few(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
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
    expansion = how_to_expand(application, follows_sources=True)
    if state.live_records is not None:
        return f"{expansion} If its records are not needed, {deletion}"
    offsets = f"`kafka-get-offsets.sh --bootstrap-server BROKER --topic {state.name}`"
    return f"If the topic is empty ({offsets}), {deletion} Otherwise: {expansion}"


def was_set_up(state: CountedTopic, have: int) -> bool:
    """Return whether the topic was set up with its present count: the document has changed, not the topic."""
    return state.recorded_partitions is not None and state.recorded_partitions >= have


def lowered_count(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has more partitions than the explicit count of the document allows.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + _REFUSED,
        fix=f"Declare {have} again. If the data is not needed, {delete_topic(application, state)}",
    )


def too_many_partitions(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.OVER_PARTITIONED,
        f"{state.title} has more partitions than expected{_cause_of(application, state, have)}.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + (_REFUSED if state.is_internal else ""),
        fix=_internal_fix(application, state, have)
        if state.is_internal
        else f"Declare {have} partitions for it.",
    )


def _internal_fix(application: CountedApplication, state: CountedTopic, have: int) -> str:
    """Return how to keep the data of an internal topic, and how to continue without it."""
    deletion = delete_topic(application, state)
    if state.live_records == 0:
        return f"The topic is empty: {deletion}"
    if was_set_up(state, have):  # its records were distributed over all these partitions
        return (
            f"{_declared_count_fix(application, state, have)}{_more_tasks_fix(application, state, have)}"
            f"If the data is not needed, {deletion}"
        )
    first = "" if moves_keys(application) else f"{_more_tasks_fix(application, state, have)}Or: "
    is_changelog = isinstance(state.declared, InternalTopic) and state.declared.kind is TopicKind.CHANGELOG
    kept = f"{COPY} {deletion} {RESTORE}" if is_changelog else f"{_DRAIN} {deletion}"
    return f"{first}{kept}"


def _declared_count_fix(application: CountedApplication, state: CountedTopic, have: int) -> str:
    """Return how to declare the count again that an earlier document may have had."""
    repartitions = [
        other.name
        for other in application.internal
        if isinstance(other.declared, InternalTopic)
        and isinstance(state.declared, InternalTopic)
        and other.declared.kind is TopicKind.REPARTITION
        and other.declared.subtopology == state.declared.subtopology
        and other.live_partitions == have
    ]
    if not repartitions or application.has_explicit_count(state):
        return ""
    return (
        f"If the document declared {have} partitions for {' or '.join(repartitions)} before (`repartition` "
        "with `partitions`), declare this count again. Otherwise: "
    )


def _more_tasks_fix(application: CountedApplication, state: CountedTopic, have: int) -> str:
    """Return how the application can use all partitions, where this moves no key away from its state."""
    short = [name for name in topics_below(application.internal, have) if name != state.name]
    others = (
        "" if not short or application.config.autoscaling else f", with {AUTOSCALING} for {listed(short)}"
    )
    if application.has_explicit_count(state):
        return f"Set the explicit count to {have} partitions{others}. "
    sources = deciding_sources(application, state)
    if not sources:
        return ""
    return (
        f"Expand {' and '.join(sources)} to {have} partitions{others}. First check every other application "
        f"that reads {'it' if len(sources) == 1 else 'them'}: its internal topics then have too few "
        "partitions, and an application with state refuses the expansion (UnsafeExpansion). "
    )


def _cause_of(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if was_set_up(state, have):
        return (
            f": it was set up with {before}, and its sources have fewer (were they re-created, or did the "
            "document declare its count?)"
        )
    return f": it was set up with {before}, and another client expanded it"


def reshard_expanded(application: CountedApplication, topics: Sequence[str]) -> Problem:
    """Return the problem of an expansion that would let the application start before its state has moved."""
    return application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} has topics to expand, and a reshard that is not complete.",
        expected="topics that the reshard expands, one after the other",
        found=f"{counted(len(topics), 'topic')} to expand: {listed(topics)}",
        why=RESHARDED.format(application.id),
        fix=CONTINUE_RESHARD,
    )


def reshard_unread(application: CountedApplication, reason: Problem, topics: Sequence[str]) -> Problem:
    """Return the problem of an expansion while it is not known whether a reshard is complete."""
    return application.problem(
        reason.code,
        reason.summary,
        expected=reason.expected,
        found=reason.found,
        why=f"It is not known whether a reshard of {application.id} is complete. If it is not, the "
        f"application could start after the expansion of {listed(topics)}, and process records without the "
        "state of their keys. So nothing is expanded.",
        fix=reason.fix,
    )


def partitioned_by_code(application: CountedApplication, topics: Sequence[str]) -> Problem:
    """Return the problem of topics, each with the class that chooses its partitions."""
    return application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} is stateful, and its code chooses partitions instead of the static partitioner.",
        expected="no `StreamPartitioner` for topics that are read with state",
        found=listed(topics),
        why="Kafka Streams does not ask the producer about these records. With more partitions, the class "
        "may send a key to another partition than its state.",
        fix="Remove the partitioner from the code and from the document. If the class keeps each key on its "
        "partition, set `setup.allowUnsafeExpansion: true`.",
    )
