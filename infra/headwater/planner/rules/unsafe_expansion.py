"""An expansion would move keys of a stateful application away from their state."""

from collections.abc import Iterator
from itertools import islice

from headwater.compiler.streams_config import INITIAL_PARTITIONS, LINEAR_HASH
from headwater.model.linear_hashing import round_start
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.advice import moves_keys, with_processors
from headwater.planner.counts import CountedApplication
from headwater.planner.phrases import counted, listed
from headwater.planner.processors import Processors, declared_processors


def unsafe_expansion(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878, motivation: autoscaling is for stateless and statically partitioned applications.

    With a number of processors, also for doubled counts, and for all counts with `linear-hash` (KIP-287).
    """
    config, declared = application.config, application.compiled.application
    if declared.setup.allow_unsafe_expansion:
        return
    if config.is_statically_partitioned:
        yield from _partitioned_by_the_code(application)
        return
    if declared.processors is not None:
        yield from _misplaced(application)
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


def _partitioned_by_the_code(application: CountedApplication) -> Iterator[Problem]:
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
    if not too_small:
        return
    yield application.problem(
        ProblemCode.UNSAFE_EXPANSION,
        f"{application.id} is stateful, and its code chooses partitions instead of the static partitioner.",
        expected="no `StreamPartitioner` for topics that are read with state",
        found=listed(f"{name} with {classes[name]}" for name in too_small),
        why="Kafka Streams does not ask the producer about these records. With more partitions, the class "
        "may send a key to another partition than its state.",
        fix="Remove the partitioner from the code and from the document. If the class keeps each key on its "
        "partition, set `setup.allowUnsafeExpansion: true`.",
    )


def _misplaced(application: CountedApplication) -> Iterator[Problem]:
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
