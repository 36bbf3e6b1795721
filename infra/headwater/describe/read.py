"""Reads texts of `Topology#describe()` (facts 3.3)."""

from collections.abc import Sequence

import attrs

from headwater.describe.blocks import split
from headwater.describe.lines import lines, old_form_line
from headwater.describe.nodes import topology_of
from headwater.describe.problems import TextProblems
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import Problem

_LONGEST_TEXT = 8 * 1024 * 1024


_MOST_LISTED = 10


@attrs.frozen
class FoundTopology:
    """A topology that a text describes; `line` is its first line, `problems` are those of its lines."""

    nodes: NodeTopology
    problems: tuple[Problem, ...] = ()
    line: int = 0


def read_description(
    text: str, file: str = "", topology: str | None = None
) -> tuple[NodeTopology, tuple[Problem, ...]]:
    """Return the topology described in `text` and the problems of the text; never raises.

    Log lines, prefixes, Windows line ends and other damage of copies are ignored. Equal descriptions count
    once. If there are different ones, `topology` chooses one: its name, or its number in the text, from 1.
    Without it they are a problem. The order of lists is kept, so that `write_description` returns the same
    text. `file` is the location of problems.
    """
    found = different_topologies(read_descriptions(text, file))
    if topology is not None:
        for number, each in enumerate(found, start=1):
            if topology in {each.nodes.name, str(number)}:
                return each.nodes, each.problems
    elif len(found) == 1:
        return found[0].nodes, found[0].problems
    problems = TextProblems(file)
    listed = [_summarized(number, each) for number, each in enumerate(found, start=1)]
    problems.not_chosen(listed, topology)
    return found[0].nodes, (*found[0].problems, *problems.found)


def read_descriptions(text: str, file: str = "") -> tuple[FoundTopology, ...]:
    """Return all topologies described in `text`, each with its problems; never raises.

    There is at least one result; without a description it has no nodes. `file` is the location of problems.
    """
    problems = TextProblems(file)
    if len(text) > _LONGEST_TEXT:
        problems.too_large(len(text), _LONGEST_TEXT)
        return (FoundTopology(NodeTopology(()), problems.found),)
    if (line := old_form_line(text)) is not None:
        problems.too_old(line)
        return (FoundTopology(NodeTopology(()), problems.found),)
    descriptions = split(lines(text), file)
    if not descriptions:
        problems.nothing()
        return (FoundTopology(NodeTopology(()), problems.found),)
    read = [(topology_of(description), description) for description in descriptions]
    return tuple(
        FoundTopology(topology, description.problems.found, description.line)
        for topology, description in read
    )


def different_topologies(found: Sequence[FoundTopology]) -> tuple[FoundTopology, ...]:
    """Return the topologies without repeats; the order of lists and problems of the text do not matter."""
    different: dict[object, FoundTopology] = {}
    for each in found:
        key = (each.nodes.name, frozenset(map(_unordered, each.nodes.nodes)), bool(each.problems))
        different.setdefault(key, each)
    return tuple(different.values())


def _unordered(node: Node) -> object:
    if isinstance(node, SourceNode):
        return node.name, frozenset(node.topics), node.pattern
    if isinstance(node, ProcessorNode):
        return node.name, frozenset(node.parents), frozenset(node.stores)
    return node.name, frozenset(node.parents), node.topic, node.extractor


def _summarized(number: int, found: FoundTopology) -> str:
    """Return a phrase about a topology by which a user recognizes it."""
    nodes = found.nodes.nodes
    sinks = {node.topic: None for node in nodes if isinstance(node, SinkNode) and node.topic is not None}
    sources = {
        topic: None
        for node in nodes
        if isinstance(node, SourceNode)
        for topic in (node.topics or (str(node.pattern),))
    }
    named = [] if found.nodes.name is None else [found.nodes.name]
    parts = (
        *named,
        f"reads {_listed([topic for topic in sources if topic not in sinks])}",
        *([f"writes {_listed(written)}"] if (written := [t for t in sinks if t not in sources]) else []),
        *(["its text is damaged"] if found.problems else []),
    )
    return f"{number} (line {found.line}): {', '.join(parts)}"


def _listed(topics: Sequence[str]) -> str:
    more = f" and {len(topics) - _MOST_LISTED} more" if len(topics) > _MOST_LISTED else ""
    return (", ".join(topics[:_MOST_LISTED]) or "nothing") + more
