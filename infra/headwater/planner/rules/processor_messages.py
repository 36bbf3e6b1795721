"""Problems of numbers of processors (KIP-287)."""

from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH
from headwater.model.problems import AGENT, Problem, ProblemCode, Severity
from headwater.planner.advice import delete_topic
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import (
    Processors,
    declared_processors,
    estimated_expansion,
    expansion_target,
    has_own_count,
)
from headwater.planner.rules.count_messages import COPY, RESTORE
from headwater.planner.run import ActiveApplication

_ONE_EACH = "Each partition of the changelog topic is the state of one processor. "
_OTHER_CLIENT = "If another client of the application adds processors, start this one again afterwards. "
_START_AGAIN = (
    "For another number without the present state, stop the application, delete its internal topics, set "
    "`setup.reinitialize: true` for one `pulumi up`, and process the input again."
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
    if declared is not None and _is_expanded_elsewhere(application, topic, have):
        return _expanded_elsewhere(application, topic, have)
    if declared is None and application.has_undeclared_processors:
        return _undeclared(application, topic, have)
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
        if _may_be_expanded_elsewhere(application, topic, have):
            fix = (
                f"{fix} If another client has added the partitions, such as an agent without `processors` in "
                f"its document, the application does not start with {have}. Then keep `processors: "
                f"{declared}`. {_keep_state(application, topic)}"
            )
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


def _undeclared(application: CountedApplication, topic: CountedTopic, have: int) -> Problem:
    """Return the problem of a document without the number that tasks of the application have committed."""
    again = (
        "If the application shall have one processor for each partition again, run `pulumi up`, which reads "
        "the record of the stack: the agent does not expand its changelog topics."
        if application.caller == AGENT
        else "To lose the connection to the old state, set `setup.allowUnsafeExpansion: true`."
    )
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"The document does not declare the {counted(have, 'processor')} of {topic.name}.",
        topic=topic,
        expected=counted(have, "processor"),
        found="`follow`",
        why="The application has committed its number of processors with its offsets. If the topic is "
        "expanded, keys of the new partitions do not find their state.",
        fix=f"Declare `processors: {have}`, as the document of the application does. {again}",
    )


def _may_be_expanded_elsewhere(application: CountedApplication, topic: CountedTopic, have: int) -> bool:
    """Return whether the topic may have been set up with the declared number, and none is committed."""
    is_declared = topic.recorded_partitions in (None, topic.partitions)
    return application.present is None and is_declared and topic.partitions < have


def _is_expanded_elsewhere(application: CountedApplication, topic: CountedTopic, have: int) -> bool:
    """Return whether another client has added partitions: an input has too few for as many processors."""
    inputs = [
        count
        for processors in declared_processors(application)
        if topic.name in processors.part.changelog_topics
        for count in processors.inputs.values()
    ]
    is_known = application.unread_count is None and topic.recorded_partitions is not None
    is_narrow = min(inputs, default=have) < have
    return is_known and is_narrow and _may_be_expanded_elsewhere(application, topic, have)


def _expanded_elsewhere(application: CountedApplication, topic: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.PROCESSOR_COUNT,
        f"{topic.title} has more partitions than the state has processors: it was set up with "
        f"{topic.recorded_partitions}, and another client expanded it.",
        topic=topic,
        expected=counted(topic.partitions, "partition"),
        found=counted(have, "partition"),
        why=_ONE_EACH + "The inputs have too few partitions for so many processors, and Kafka cannot remove "
        f"partitions. The application {'stops' if application.caller.is_running else 'does not start'}.",
        fix=_keep_state(application, topic),
    )


def _keep_state(application: CountedApplication, topic: CountedTopic) -> str:
    """Return how the application continues with its number of processors.

    At its start, it reads the number that its tasks have committed. If they have not, the topic must get as
    many partitions as processors again, with its records.
    """
    if application.caller.is_running:
        return (
            "Start the application again: it continues with the number that its tasks have committed. If it "
            "does not start, `headwater plan` says how to restore the topic."
        )
    return f"{COPY} {delete_topic(application, topic)} {RESTORE}"


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
