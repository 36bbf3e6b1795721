"""Partition counts that do not fit the source topics, and numbers of processors (KIP-287)."""

from collections.abc import Iterator
from itertools import islice

import attrs

from headwater.compiler.streams_config import LINEAR_HASH
from headwater.model.linear_hashing import round_start
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import moves_keys, partitioner_key, with_processors, with_reshard
from headwater.planner.counts import CountedApplication
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import (
    Processors,
    declared_processors,
    expansion_target,
    has_own_count,
    known_numbers,
    processors_in,
    processors_to_expand,
)
from headwater.planner.rules import count_messages as messages
from headwater.planner.rules import processor_messages
from headwater.planner.run import ActiveApplication


def source_topics_expanded(application: CountedApplication) -> Iterator[Problem]:
    """Yield internal topics that are too small because source topics were expanded (KIP-878).

    Without autoscaling, INCOMPLETE_SOURCE_TOPIC_METADATA stops the application.
    """
    if application.config.autoscaling:
        return
    for state in application.internal:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.missing_partitions:
            if application.has_explicit_count(state):
                yield messages.raised_count(application, state, state.live_partitions)
            elif state.recorded_partitions is not None:
                yield messages.expanded_sources(application, state, state.live_partitions)
            else:
                yield messages.too_few(application, state, state.live_partitions)


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """Yield topics with too many partitions (KIP-878): an error in both setup modes.

    Headwater never replaces the topic. The number of processors decides the count of some changelogs:
    `processors_and_partitions` checks those.
    """
    for state in application.topics:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.live_partitions > state.partitions:
            is_lowered = application.has_explicit_count(state) and messages.was_set_up(
                state, state.live_partitions
            )
            yield (messages.lowered_count if is_lowered else messages.too_many_partitions)(
                application, state, state.live_partitions
            )


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """Yield expansions that move keys away from their state (KIP-878, motivation).

    Autoscaling is for stateless and statically partitioned applications. With a number of processors, doubled
    counts are safe, too, and with `linear-hash` all counts (KIP-287).
    """
    config, declared = application.config, application.compiled.application
    too_small = [state.name for state in application.internal if state.missing_partitions]
    if application.is_resharded and config.autoscaling and too_small:
        yield messages.reshard_expanded(application, too_small)
        return
    if application.unread_reshard is not None and config.autoscaling and too_small:
        yield messages.reshard_unread(application, application.unread_reshard, too_small)
        return
    if declared.setup.allow_unsafe_expansion:
        return
    if config.is_statically_partitioned:
        yield from _topics_partitioned_by_code(application)
        return
    if declared.processors is not None:
        yield from _misplaced_keys(application)
        return
    if application.initial or application.has_undeclared_processors:
        return  # `processors_and_partitions` reports that the document does not declare them
    if not too_small or not config.autoscaling or not moves_keys(application):
        return
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} is stateful and not statically partitioned: an expansion moves keys away from "
        "their state.",
        expected=f"a stateless application, or {partitioner_key(application)}",
        found=f"{counted(len(too_small), 'topic')} to expand: {listed(too_small)}",
        why="With more partitions Kafka's partitioner sends most keys to another partition. Their state "
        "stays in the old one: counts start from zero, joins miss records.",
        fix=f"If the producers partition statically, set {partitioner_key(application)}. "
        f"{with_reshard(application)}{with_processors(application)}To expand and lose the connection to the "
        "old state, set `setup.allowUnsafeExpansion: true`.",
    )


def refused_without_the_switch(application: ActiveApplication) -> Iterator[Problem]:
    """Yield the problems that this run would have without `setup.allowUnsafeExpansion`."""
    compiled = application.compiled
    setup = attrs.evolve(compiled.application.setup, allow_unsafe_expansion=False)
    declared = attrs.evolve(compiled.application, setup=setup)
    without = attrs.evolve(application, compiled=attrs.evolve(compiled, application=declared))
    yield from unsafe_expansion(without)
    yield from processors_and_partitions(without)


def _topics_partitioned_by_code(application: CountedApplication) -> Iterator[Problem]:
    """Report repartition topics before state whose partitions the library's partitioner does not choose."""
    if application.config.library_function is None or not application.config.autoscaling:
        return
    compiled = application.compiled
    before_state = {topic for part in compiled.subtopologies if part.is_stateful for topic in part.sources}
    classes = {sink.topic: sink.partitioner for sink in compiled.partitioned_sinks or () if sink.is_internal}
    too_small = [
        state.name
        for state in application.internal
        if state.missing_partitions and state.name in classes and state.name in before_state
    ]
    if too_small:
        yield messages.partitioned_by_code(
            application, [f"{name} with {classes[name]}" for name in too_small]
        )


def _misplaced_keys(application: CountedApplication) -> Iterator[Problem]:
    found = [processors for processors in declared_processors(application) if processors.live is not None]
    linear = application.config.linear_initial
    if application.config.static_partitioner == LINEAR_HASH:
        others = (each for each in found if linear is not None and not _is_same(each, linear))
        if (other := next(others, None)) is not None:
            yield processor_messages.other_initial(application, other, linear or 0)
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


def processors_at_first_setup(application: ActiveApplication) -> Iterator[Problem]:
    """Yield first numbers of processors that are not the partition count (KIP-287, partition expansion, 1).

    A sub-topology that is added to an application with processors, or whose changelogs are lost, may start
    with their number, too. Without a setup record it is not known whether this is the first setup.
    """
    is_static = application.config.static_partitioner is not None
    for processors in declared_processors(application):
        counts = set(processors.inputs.values())
        is_later = processors.declared in known_numbers(application) or not application.caller.knows_setup
        keeps_keys = not processors.too_narrow and (is_static or not processors.misplaced)
        if processors.live is None and counts != {processors.declared} and not (is_later and keeps_keys):
            yield processor_messages.first_setup(application, processors, counts)


def processors_and_partitions(application: CountedApplication) -> Iterator[Problem]:
    """Yield numbers of processors that do not fit the partitions or the recorded number.

    There are at least as many partitions as processors, and the number is remembered (KIP-287, partition
    expansion, 2 and 3). Declared processors that the running application can add are no error: it adds them
    after its start.
    """
    target, declared = expansion_target(application), application.compiled.application.processors
    if target is not None and declared is not None and declared < target:
        yield processor_messages.being_expanded(application, target, declared)
        return
    present = processors_to_expand(application)
    if present is not None:
        yield processor_messages.expanded_later(application, present)
        return
    for topic in application.internal:
        have = processors_in(application, topic)
        if have is not None and have != topic.partitions and has_own_count(application, topic):
            yield processor_messages.changed_count(application, topic, have)
    for processors in declared_processors(application):
        if processors.live == processors.declared and processors.too_narrow:
            yield processor_messages.too_narrow(application, processors)
