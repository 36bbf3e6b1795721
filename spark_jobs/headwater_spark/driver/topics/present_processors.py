"""How many processors the state of an application has when it starts, and whether more are being added."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.compiler.streams_config import INITIAL_PARTITIONS, StreamsConfig
from headwater.model.compiled import CompiledApplication
from headwater.model.linear_hashing import round_start
from headwater.model.offset_metadata import MoveMark, decode_declared, decode_initial, decode_number
from headwater.model.topology import Application, TopologyDocument
from headwater_spark.engine.scaling.processors import processors_of


def changelog_counts(compiled: CompiledApplication, counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return changelog topic → partition count, of those with a partition for each processor that exist."""
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    return {
        topic: counts[topic] for part in parts for topic in sorted(part.changelog_topics) if topic in counts
    }


def input_counts(compiled: CompiledApplication, counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return input topic → partition count, of existing topics that processors read."""
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    return {topic: counts[topic] for part in parts for topic in sorted(part.sources) if topic in counts}


def present_processors(
    application: Application,
    changelogs: Mapping[str, int],
    inputs: Mapping[str, int],
    texts: Sequence[str],
    announced: MoveMark | None,
) -> int:
    """Return the number of processors of the state.

    Some may have been added since the document was written, or the document declares more, which the
    application adds while it runs. Their number is committed: after some were removed, or another client has
    expanded the changelog topics, it decides. Other numbers are left to the planner, which refuses them.

    Args:
        application: Declares a number of processors.
        changelogs: Changelog topic → partition count.
        inputs: Input topic → partition count.
        texts: What is committed with the offsets of the inputs.
        announced: The mark of an expansion that has begun: the partitions of added processors are not
            complete.
    """
    declared = application.processors or 1
    if announced is not None:
        return announced.before
    found = set(changelogs.values())
    if (number := decode_number(texts, max(found, default=0))) is not None and found:
        return number if min(found) >= number else declared
    if len(found) != 1 or (count := found.pop()) == declared:
        return declared
    # If another client has expanded or replaced the changelog topics, no task has committed as one of this
    # number. Texts of earlier versions of Headwater show only the initial number.
    committed = decode_initial(texts, count)
    is_other = committed is not None and round_start(committed, count) != _initial_of_inputs(
        application, count, inputs
    )
    return declared if is_other or not decode_declared(texts) <= {count, None} else count


def initial_processors(
    application: Application,
    present: int,
    changelogs: Mapping[str, int],
    inputs: Mapping[str, int],
    texts: Sequence[str],
) -> int | None:
    """Return the initial number of `present` processors, or a number doubled from it; None = not known.

    If nothing is committed, the partition counts at this start decide, and later ones are compared with them.
    """
    committed = decode_initial(texts, present)
    if committed is not None or not inputs:
        return committed
    return _initial_of_inputs(application, present, inputs) if changelogs else present


def _initial_of_inputs(application: Application, count: int, inputs: Mapping[str, int]) -> int:
    return processors_of(attrs.evolve(application, processors=count), inputs.values()).initial


def with_processors(
    document: TopologyDocument, processors: int, initial: int | None = None
) -> TopologyDocument:
    """Return a document that declares this number of processors: no key moves to another partition.

    `initial` is the initial number, or a number that it was doubled to; None = as before.
    """
    application = document.application
    config = dict(application.config)
    linear = StreamsConfig.from_application(application).linear_initial
    if linear is not None and linear > processors:
        config[INITIAL_PARTITIONS] = str(round_start(linear, processors) or linear)
    changed = attrs.evolve(
        application,
        processors=processors,
        initial_processors=application.initial_processors if initial is None else initial,
        config=config,
    )
    return attrs.evolve(document, application=changed)
