"""Names edited calls of a document that have no effect: options that do not apply where they are set."""

from collections.abc import Iterator

from headwater.model.operators import Step
from headwater.model.topology import TopologyDocument
from headwater.planner.document_settings import call_options, topology_content
from headwater.planner.edits.settings import camel_case
from headwater.planner.edits.values import OperatorEdit, TopicEdit


def calls_without_effect(
    before: TopologyDocument,
    after: TopologyDocument,
    topics: tuple[TopicEdit, ...],
    operators: tuple[OperatorEdit, ...],
) -> Iterator[str]:
    """Yield a sentence about edited calls if nothing else shows that the topology was edited.

    Such an option is ignored, such as `retention` of a key-value store, or decides only the format of records
    that no store and no topic has.
    """
    if not (before.has_calls and after.has_calls):
        return
    if operators or not all(topic.is_unchanged for topic in topics):
        return
    if topology_content(before) == topology_content(after):
        return
    options = ", ".join(dict.fromkeys(_edited_options(before.steps, after.steps)))
    edited = f" ({options})" if options else ""
    yield (
        f"The topology was edited{edited}, but its operators, stores and topics are the same: the option "
        "does not apply there, or is a format of records that no store or topic has."
    )


def _edited_options(before: tuple[Step, ...], after: tuple[Step, ...]) -> Iterator[str]:
    """Yield location and name of each option with another value, if both sides have the same calls."""
    if [type(step.operator) for step in before] != [type(step.operator) for step in after]:
        return
    for old, new in zip(before, after, strict=True):
        first, second = call_options(old), call_options(new)
        for name in sorted({*first, *second}):
            if first.get(name) != second.get(name):
                key = camel_case(name)
                yield f"{new.at}: {key}"
