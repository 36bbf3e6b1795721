"""A topic has more partitions than expected."""

from collections.abc import Iterator

from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import (
    AUTOSCALING,
    deciding_sources,
    delete_topic,
    expected_partitions,
    moves_keys,
    topics_below,
)
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import has_own_count


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878: an error in both setup modes. Headwater never replaces the topic.

    The number of processors decides the count of some changelogs: `processors_and_partitions` checks those.
    """
    for state in application.topics:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.live_partitions > state.partitions:
            is_lowered = application.has_explicit_count(state) and _was_set_up(state, state.live_partitions)
            yield (_lowered if is_lowered else _problem)(application, state, state.live_partitions)


def _was_set_up(state: CountedTopic, have: int) -> bool:
    """Return whether the topic was set up with its present count: the document has changed, not the topic."""
    return state.recorded_partitions is not None and state.recorded_partitions >= have


def _lowered(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has more partitions than the explicit count of the document allows.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + _REFUSED,
        fix=f"Declare {have} again. If the data is not needed, {delete_topic(application, state)}",
    )


def _problem(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.OVER_PARTITIONED,
        f"{state.title} has more partitions than expected{_cause(application, state, have)}.",
        topic=state,
        expected=expected_partitions(application, state),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + (_REFUSED if state.is_internal else ""),
        fix=_internal(application, state, have)
        if state.is_internal
        else f"Declare {have} partitions for it.",
    )


def _internal(application: CountedApplication, state: CountedTopic, have: int) -> str:
    """Return how to keep the data of an internal topic, and how to continue without it."""
    deletion = delete_topic(application, state)
    if state.live_records == 0:
        return f"The topic is empty: {deletion}"
    if _was_set_up(state, have):  # its records were distributed over all these partitions
        return f"{_more(application, state, have)}If the data is not needed, {deletion}"
    first = "" if moves_keys(application) else f"{_more(application, state, have)}Or: "
    is_changelog = isinstance(state.declared, InternalTopic) and state.declared.kind is TopicKind.CHANGELOG
    kept = f"{_COPY} {deletion} {_RESTORE}" if is_changelog else f"{_DRAIN} {deletion}"
    return f"{first}{kept}"


def _more(application: CountedApplication, state: CountedTopic, have: int) -> str:
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


def _cause(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if _was_set_up(state, have):
        return f": it was set up with {before}, and its sources now have fewer (were they re-created?)"
    return f": it was set up with {before}, and another client expanded it"
