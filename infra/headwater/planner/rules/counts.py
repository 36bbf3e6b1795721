"""Partition counts that do not fit the source topics."""

from collections.abc import Iterator
from itertools import islice

from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.linear_hashing import round_start
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import (
    AUTOSCALING,
    deciding_sources,
    delete_topic,
    expected_partitions,
    how_to_expand,
    moves_keys,
    topics_below,
    with_processors,
)
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import Processors, declared_processors, has_own_count


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878 without autoscaling: INCOMPLETE_SOURCE_TOPIC_METADATA stops the application."""
    if application.config.autoscaling:
        return
    for state in application.internal:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.missing_partitions:
            if application.has_explicit_count(state):
                yield _raised_count(application, state, state.live_partitions)
            elif state.recorded_partitions is not None:
                yield _expanded_sources(application, state, state.live_partitions)
            else:
                yield _too_few(application, state, state.live_partitions)


def _expanded_sources(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        f"{state.title} has fewer partitions than its source topics require.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=_WHY,
        fix=f"{how_to_expand(application)} Kafka cannot remove partitions of source topics.",
    )


def _raised_count(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
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


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878: an error in both setup modes. Headwater never replaces the topic.

    The number of processors decides the count of some changelogs: `processors_and_partitions` checks those.
    """
    for state in application.topics:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.live_partitions > state.partitions:
            is_lowered = application.has_explicit_count(state) and _was_set_up(state, state.live_partitions)
            yield (_lowered_count if is_lowered else _too_many_partitions)(
                application, state, state.live_partitions
            )


def _was_set_up(state: CountedTopic, have: int) -> bool:
    """Return whether the topic was set up with its present count: the document has changed, not the topic."""
    return state.recorded_partitions is not None and state.recorded_partitions >= have


def _lowered_count(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has more partitions than the explicit count of the document allows.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + _REFUSED,
        fix=f"Declare {have} again. If the data is not needed, {delete_topic(application, state)}",
    )


def _too_many_partitions(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
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
    if _was_set_up(state, have):  # its records were distributed over all these partitions
        return f"{_more_tasks_fix(application, state, have)}If the data is not needed, {deletion}"
    first = "" if moves_keys(application) else f"{_more_tasks_fix(application, state, have)}Or: "
    is_changelog = isinstance(state.declared, InternalTopic) and state.declared.kind is TopicKind.CHANGELOG
    kept = f"{_COPY} {deletion} {_RESTORE}" if is_changelog else f"{_DRAIN} {deletion}"
    return f"{first}{kept}"


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
        f"Expand {' and '.join(sources)} to {have} partitions{others}. First check every other "
        f"application that reads "
        f"{'it' if len(sources) == 1 else 'them'}: its internal topics then have too few partitions, and an "
        "application with state refuses the expansion (UnsafeExpansion). "
    )


_IRREVERSIBLE = "Kafka cannot remove partitions, and replacing the topic would lose its data."
_REFUSED = " The application does not start if an internal topic has another count than expected."
_DRAIN = "If the application has processed all records of the topic (no lag in it), or they are not needed,"
_COPY = (
    "To keep the state, copy the records of each partition that is expected. Then, or if the state is not "
    "needed,"
)
_RESTORE = "Write the copies to the same partitions before the application starts again."


def _cause_of(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if _was_set_up(state, have):
        return f": it was set up with {before}, and its sources now have fewer (were they re-created?)"
    return f": it was set up with {before}, and another client expanded it"


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878, motivation: autoscaling is for stateless and statically partitioned applications.

    With a number of processors, also for doubled counts, and for all counts with `linear-hash` (KIP-287).
    """
    config, declared = application.config, application.compiled.application
    if config.is_statically_partitioned or declared.setup.allow_unsafe_expansion:
        return
    if declared.processors is not None:
        yield from _misplaced_keys(application)
        return
    if application.initial:
        return  # `processors_and_partitions` reports that the document no longer declares the processors
    too_small = [state.name for state in application.internal if state.missing_partitions]
    if not too_small or not application.config.autoscaling or not moves_keys(application):
        return
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} is stateful and not statically partitioned: an expansion moves keys away from "
        "their state.",
        expected="a stateless application, or `static.partitioner.class`",
        found=f"{counted(len(too_small), 'topic')} to expand: {listed(too_small)}",
        why="With more partitions Kafka's partitioner sends most keys to another partition. Their state "
        "stays in the old one: counts start from zero, joins miss records.",
        fix="If the producers partition statically, set `static.partitioner.class`. "
        f"{with_processors(application)}To expand and lose the connection to the old state, set "
        "`setup.allowUnsafeExpansion: true`.",
    )


def _misplaced_keys(application: CountedApplication) -> Iterator[Problem]:
    found = [processors for processors in declared_processors(application) if processors.live is not None]
    linear = application.config.linear_initial
    if application.config.static_partitioner == LINEAR_HASH:
        others = (each for each in found if linear is not None and not _is_same(each, linear))
        if (other := next(others, None)) is not None:
            yield _other_initial(application, other, linear or 0)
        return
    misplaced = [processors for processors in found if processors.misplaced]
    if not misplaced:
        return
    counts = {topic: part.inputs[topic] for part in misplaced for topic in part.misplaced}
    allowed = ", ".join(map(str, islice(misplaced[0].safe_counts, 4)))
    following = next(count for count in misplaced[0].safe_counts if count >= max(counts.values()))
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} has {counted(misplaced[0].declared, 'processor')} and a partition count that "
        "moves keys away from their state.",
        expected=f"{allowed}, … partitions",
        found=listed(f"{topic} with {counted(count, 'partition')}" for topic, count in counts.items()),
        why="Kafka's partitioner chooses the hash of the key modulo the partition count. If the initial "
        "count is doubled, each key stays with its processor. At other counts, keys reach a processor "
        "without their state.",
        fix=f"Expand the source topics to {following} partitions. If the "
        "producers partition statically or by linear hashing, set `static.partitioner.class`. To lose the "
        "connection to the old state, set `setup.allowUnsafeExpansion: true`.",
    )


def _is_same(processors: Processors, linear: int) -> bool:
    """Return whether keys have the same processors with this initial number as with the recorded one."""
    count = processors.live or processors.declared
    return round_start(processors.initial, count) == round_start(linear, count)


def _other_initial(application: CountedApplication, processors: Processors, linear: int) -> Problem:
    return application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} has another initial number of partitions than it was set up with.",
        expected=f"`{INITIAL_PARTITIONS}: {processors.initial}`",
        found=f"`{INITIAL_PARTITIONS}: {linear}`",
        why="With another initial number, keys belong to other partitions, and reach a processor without "
        "their state.",
        fix="Set the number as before. It stays the same when partitions or processors are added. To lose "
        "the connection to the old state, set `setup.allowUnsafeExpansion: true`.",
    )
