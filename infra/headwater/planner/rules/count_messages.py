"""Problems of partition counts and of numbers of processors."""

from collections.abc import Sequence

from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity
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
from headwater.planner.processors import (
    Processors,
    declared_processors,
    estimated_expansion,
    expansion_target,
    has_own_count,
)
from headwater.planner.run import ActiveApplication

_WHY = (
    "The application stops at its next rebalance: Kafka Streams checks the count of an existing internal "
    "topic and does not add partitions."
)
_IRREVERSIBLE = "Kafka cannot remove partitions, and replacing the topic would lose its data."
_REFUSED = " The application does not start if an internal topic has another count than expected."
_DRAIN = "If the application has processed all records of the topic (no lag in it), or they are not needed,"
_COPY = (
    "To keep the state, copy the records of each partition that is expected. Then, or if the state is not "
    "needed,"
)
_RESTORE = "Write the copies to the same partitions before the application starts again."
_ONE_EACH = "Each partition of the changelog topic is the state of one processor. "
_OTHER_CLIENT = "If another client of the application adds processors, start this one again afterwards. "
_START_AGAIN = (
    "For another number without the present state, stop the application, delete its internal topics, set "
    "`setup.reinitialize: true` for one `pulumi up`, and process the input again."
)


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
    kept = f"{_COPY} {deletion} {_RESTORE}" if is_changelog else f"{_DRAIN} {deletion}"
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


def other_initial(application: CountedApplication, processors: Processors, linear: int) -> Problem:
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


def expanded_later(application: CountedApplication, present: int) -> Problem:
    declared = application.compiled.application.processors or 0
    changelog = next(topic for topic in application.internal if has_own_count(application, topic))
    parts = [processors.part for processors in declared_processors(application)]
    estimate = estimated_expansion(application, parts)
    work = f", and reads {estimate.amount} for it ({estimate.duration})" if estimate else ""
    fix = (
        "Start the application with this document, or start it again: it expands itself. If it must not "
        f"be restarted, run `headwater processors expand --to {declared}`."
    )
    if target := expansion_target(application):
        fix = (
            f"Wait until the application has {counted(target, 'processor')}: it adds them now, and "
            "`headwater status` shows the progress. If it is stopped, start it: it continues."
        )
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"The state of {application.id} has {present} of {counted(declared, 'declared processor')}.",
        topic=changelog,
        expected=counted(declared, "processor"),
        found=counted(present, "processor"),
        why=f"A run never moves state. The application adds the missing processors while it runs{work}.",
        fix=fix,
        severity=Severity.WARNING,
    )


def being_expanded(application: CountedApplication, target: int, declared: int) -> Problem:
    present = application.present or 0
    changelog = next(topic for topic in application.internal if has_own_count(application, topic))
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"{application.id} is being expanded from {present} to {counted(target, 'processor')}.",
        topic=changelog,
        expected=counted(target, "processor"),
        found=f"{counted(declared, 'declared processor')}; the state has {present}",
        why="An expansion that has begun cannot be canceled. When it is complete, the state has "
        f"{counted(target, 'processor')}.",
        fix=f"Declare `processors: {target}`.",
    )


def first_setup(application: ActiveApplication, processors: Processors, counts: set[int]) -> Problem:
    if len(counts) > 1:
        expected = "inputs with equal partition counts"
        fix = (
            "Expand the smaller inputs to the largest count, and set `processors` to it. Or put "
            "repartition() before the operators with state."
        )
    else:
        (count,) = counts
        expected = f"{counted(count, 'processor')}, as many as partitions"
        fix = f"Set `processors: {count}`."
        if count < processors.declared:
            fix += f" Or expand the source topics to {processors.declared} partitions first."
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"Sub-topology {processors.part.id} of {application.id} is not set up yet, and it does not have as "
        "many processors as partitions.",
        expected=expected,
        found=f"{counted(processors.declared, 'processor')}, {_counts_text(processors)}",
        why="At first each partition has a processor of its own. Partitions that are added later are "
        "assigned to these processors, so that no key moves (KIP-287).",
        fix=fix,
    )


def changed_count(application: CountedApplication, topic: CountedTopic, have: int) -> Problem:
    declared = application.compiled.application.processors
    if declared is None:
        again = " again" if application.initial else ""
        summary = f"The document no longer declares the {counted(have, 'processor')} of {topic.name}."
        why = (
            "There are more partitions than processors. With one processor for each partition, keys of the "
            "new partitions would not find their state."
        )
        fix = (
            f"Declare `processors: {have}`{again}. To lose the connection to the old state, set "
            "`setup.allowUnsafeExpansion: true`."
        )
    elif declared < have:
        summary = f"The document declares fewer processors than the state in {topic.name} has."
        why = f"{_ONE_EACH}A run never moves state.{_unread_reason(application)}"
        fix = (
            f"Declare `processors: {have}`; after `headwater processors expand`, that is the new number. "
            f"{_fewer_fix(application)}"
        )
        if application.caller.is_running:
            fix = f"{_OTHER_CLIENT}{fix}"
    else:
        summary = f"The document declares more processors than the state in {topic.name} has."
        why = _ONE_EACH + "The state of the keys of added processors has to move to their partitions."
        fix = f"{_more_fix(application, declared, have)} Or declare `processors: {have}` again."
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        summary,
        topic=topic,
        expected=counted(have, "processor"),
        found="`follow`" if declared is None else counted(declared, "processor"),
        why=why,
        fix=fix,
    )


def _fewer_fix(application: CountedApplication) -> str:
    """Return how to get fewer processors."""
    if application.config.static_partitioner not in (None, "default", LINEAR_HASH):
        return _START_AGAIN
    return (
        "For fewer processors, stop the application, and run `headwater processors move --offline` with the "
        "document. Then run this command again, or start the application."
    )


def _unread_reason(application: CountedApplication) -> str:
    """Return why it is not known whether the state has fewer processors already."""
    if application.unread_count is None:
        return ""
    return (
        " If processors were removed, only the committed offsets show it, and these could not be read: "
        f"{application.unread_count.summary}"
    )


def _more_fix(application: CountedApplication, declared: int, have: int) -> str:
    """Return how to get more processors."""
    first = ""
    if narrow := [each for each in declared_processors(application) if each.too_narrow]:
        linear = application.config.static_partitioner == LINEAR_HASH
        count = declared if linear else next(narrow[0].safe_counts)
        first = f"First expand the source topics to {count} partitions with `processors: {have}`. "
    return (
        f"{first}If the application runs, run `headwater processors expand --to {declared}`. Or stop it, and "
        "run `headwater processors move --offline` with the document. Then run this command again."
    )


def too_narrow(application: CountedApplication, processors: Processors) -> Problem:
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"Sub-topology {processors.part.id} of {application.id} has more processors than partitions of "
        f"{listed(processors.too_narrow)}.",
        expected=f"at least {counted(processors.declared, 'partition')}",
        found=_counts_text(processors),
        why="A processor without partitions reads nothing, and keys of the state are no longer read by the "
        "processor that has it (KIP-287). Topics do not shrink: the source topic was re-created.",
        fix=f"Re-create it with {counted(processors.declared, 'partition')}. {_START_AGAIN}",
    )


def _counts_text(processors: Processors) -> str:
    return listed(f"{topic} with {counted(count, 'partition')}" for topic, count in processors.inputs.items())
