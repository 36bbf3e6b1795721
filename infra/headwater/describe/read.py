"""Reads texts of `Topology#describe()` (facts 3.3)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.describe.lines import Line, LineKind, description_lines, old_form_line
from headwater.describe.problems import TextProblems
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import Problem, first_names


@attrs.define
class RawNode:
    """The line of a node with the lines of its two lists; None = missing."""

    line: Line
    children: Line | None = None
    parents: Line | None = None


@attrs.define
class Block:
    """A sub-topology of the text."""

    id: int
    line: int
    is_global: bool
    nodes: list[RawNode] = attrs.field(factory=list)


@attrs.define
class Description:
    """A topology of the text; `name` is the name of a named topology."""

    problems: TextProblems
    name: str | None = None
    line: int = 0
    blocks: list[Block] = attrs.field(factory=list)


def split_descriptions(found: Iterable[Line], file: str) -> list[Description]:
    """Return the descriptions in these lines; one without a sub-topology only if there is no other."""
    descriptions: list[Description] = []
    for line in found:
        if line.kind is LineKind.TOPOLOGY:
            descriptions.append(Description(TextProblems(file), line.name or None, line.number))
            continue
        if not descriptions or (line.kind is LineKind.SUBTOPOLOGY and _starts_over(line, descriptions[-1])):
            descriptions.append(Description(TextProblems(file), line=line.number))
        _take_line(line, descriptions[-1])
    return [each for each in descriptions if each.blocks or each.problems.found] or descriptions[:1]


def _starts_over(line: Line, description: Description) -> bool:
    return line.name == "0" and bool(description.blocks) and not line.is_broken


def _take_line(line: Line, description: Description) -> None:
    problems = description.problems
    if line.is_broken:
        problems.add_incomplete_line(line.number, line.kind)
    elif line.kind is LineKind.SUBTOPOLOGY:
        description.blocks.append(Block(int(line.name), line.number, line.detail == "global"))
    elif not description.blocks:
        _report_misplaced(line, problems, "a line `Sub-topology: 0` before the first node")
    elif line.kind in {LineKind.SOURCE, LineKind.PROCESSOR, LineKind.SINK}:
        description.blocks[-1].nodes.append(RawNode(line))
    elif not description.blocks[-1].nodes:
        _report_misplaced(line, problems, "the line of a node before its lists")
    else:
        _take_list(line, description.blocks[-1].nodes[-1], problems)


def _take_list(line: Line, node: RawNode, problems: TextProblems) -> None:
    is_children = line.kind is LineKind.CHILDREN
    if (node.children if is_children else node.parents) is not None:
        _report_misplaced(line, problems, f"one list of that kind for {node.line.name}")
    elif is_children and node.line.kind is LineKind.SINK:
        _report_misplaced(line, problems, f"no children of the sink {node.line.name}")
    elif not is_children and node.line.kind is LineKind.SOURCE:
        _report_misplaced(line, problems, f"no parents of the source {node.line.name}")
    elif is_children:
        node.children = line
    else:
        node.parents = line


def _report_misplaced(line: Line, problems: TextProblems, expected: str) -> None:
    """Report a line in the wrong position, unless it may be another line of a log."""
    if not line.is_prefixed:
        problems.add_misplaced_line(line.number, line.kind, expected)


_TOPIC_LIST = re.compile(r"\[([\w.\-]+(?:,\s*[\w.\-]+)*)\]", re.ASCII)
"""Other texts after `topics: ` are patterns."""

Lists = tuple[tuple[str, ...], tuple[str, ...]]


class Names:
    """Splits lists of node names, given the names of all nodes of the sub-topology."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = frozenset(names)
        self._longest = max((name.count(", ") for name in self._known), default=0) + 1

    def in_list(self, text: str) -> tuple[str, ...]:
        """Return the names in an arrow list; names may contain commas, then the longest known one is used."""
        if text == "none":
            return ()
        if self._longest == 1:
            return tuple(part.strip() for part in text.split(","))
        parts = text.split(", ")
        names: list[str] = []
        at = 0
        while at < len(parts):
            sizes = range(min(self._longest, len(parts) - at), 1, -1)
            taken = next((size for size in sizes if ", ".join(parts[at : at + size]) in self._known), 1)
            names.append(", ".join(parts[at : at + taken]).strip())
            at += taken
        return tuple(names)


def _topology_of(description: Description) -> NodeTopology:
    """Return the node topology of a description; contradictions are added to its problems."""
    problems = description.problems
    nodes: dict[str, Node] = {}
    listing: dict[str, Lists] = {}
    groups: dict[str, int] = {}
    global_nodes: set[str] = set()
    for block in _in_order(description):
        names = Names(raw.line.name for raw in block.nodes)
        lists = {raw.line.name: _read_lists(raw, names, problems) for raw in block.nodes}
        _check_block(block, lists, problems)
        for raw in block.nodes:
            if raw.line.name in nodes:
                problems.add(
                    raw.line.number,
                    f"Node {raw.line.name} is listed twice.",
                    "each node once",
                    "a second one",
                    node=raw.line.name,
                )
                continue
            nodes[raw.line.name] = _build_node(raw, lists[raw.line.name])
            listing[raw.line.name] = lists[raw.line.name]
            groups[raw.line.name] = block.id
        if block.is_global:
            global_nodes |= lists.keys()
    return NodeTopology(
        nodes=tuple(nodes.values()),
        global_nodes=frozenset(global_nodes),
        listing=listing,
        printed_groups=groups,
        name=description.name,
    )


def _numbered_blocks(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the blocks, global stores with the free numbers if these are exactly what is missing.

    `kafka-streams-groups.sh` counts global stores from the number of other sub-topologies.
    """
    taken = {block.id for block in blocks if not block.is_global}
    free = [number for number in range(len(blocks)) if number not in taken]
    stores = [block for block in blocks if block.is_global]
    if len(free) != len(stores) or sorted(block.id for block in stores) == free:
        return blocks
    numbers = dict(zip(map(id, stores), free, strict=True))
    return [attrs.evolve(block, id=numbers.get(id(block), block.id)) for block in blocks]


def _in_order(description: Description) -> Iterator[Block]:
    """Return the blocks by id; ids other than 0, 1, 2… mean that text is missing."""
    blocks = sorted(_numbered_blocks(description.blocks), key=lambda block: block.id)
    expected = 0
    for block in blocks:
        if block.id != expected:
            description.problems.add(
                block.line,
                f"Sub-topology {block.id} does not follow sub-topology {expected - 1}."
                if expected
                else f"The first sub-topology is {block.id}.",
                f"Sub-topology: {expected}",
                f"Sub-topology: {block.id}",
            )
        expected = block.id + 1
        yield block


def _read_lists(raw: RawNode, names: Names, problems: TextProblems) -> Lists:
    kind, name, number = raw.line.kind, raw.line.name, raw.line.number
    if raw.children is None and kind is not LineKind.SINK:
        problems.add(
            number, f"The children of {name} are missing.", "a line `--> …` after it", "none", node=name
        )
    if raw.parents is None and kind is not LineKind.SOURCE:
        problems.add(
            number, f"The parents of {name} are missing.", "a line `<-- …` after it", "none", node=name
        )
    children = names.in_list(raw.children.detail) if raw.children else ()
    parents = names.in_list(raw.parents.detail) if raw.parents else ()
    return children, parents


def _check_block(block: Block, lists: Mapping[str, Lists], problems: TextProblems) -> None:
    number = block.line
    sources = [raw for raw in block.nodes if raw.line.kind is LineKind.SOURCE]
    if not sources:
        problems.add(
            number, f"Sub-topology {block.id} has no source.", "at least one line `Source: …`", "none"
        )
    if block.is_global and (len(sources) != 1 or len(block.nodes) != 2):  # noqa: PLR2004
        problems.add(
            number,
            f"The global store of sub-topology {block.id} is not complete.",
            "one source and one processor",
            f"{len(block.nodes)} nodes",
        )
    links = {(parent, name) for name, (_, parents) in lists.items() for parent in parents}
    claimed = {(name, child) for name, (children, _) in lists.items() for child in children}
    lines = {raw.line.name: raw.line.number for raw in block.nodes}
    for parent, child in sorted((links | claimed) - (links & claimed)):
        _report_link(parent, child, lines, is_claimed=(parent, child) in claimed, problems=problems)


def _report_link(
    parent: str, child: str, lines: Mapping[str, int], *, is_claimed: bool, problems: TextProblems
) -> None:
    where, there = (parent, child) if is_claimed else (child, parent)
    if there not in lines:
        problems.add(
            lines[where],
            f"{where} names {there}, which is not in its sub-topology.",
            f"a line for {there}",
            "none",
            node=where,
        )
    else:
        problems.add(
            lines[there],
            f"{where} names {there}, which does not name it back.",
            f"{where} in the list `{'<--' if is_claimed else '-->'}` of {there}",
            "a list without it",
            node=there,
        )


def _build_node(raw: RawNode, lists: Lists) -> Node:
    name, detail = raw.line.name, raw.line.detail
    if raw.line.kind is LineKind.SOURCE:
        topics = _TOPIC_LIST.fullmatch(detail)
        if topics is None:
            return SourceNode(name, pattern=detail)
        return SourceNode(name, tuple(topic.strip() for topic in topics[1].split(",")))
    if raw.line.kind is LineKind.PROCESSOR:
        stores = tuple(store.strip() for store in detail.split(",")) if detail.strip() else ()
        return ProcessorNode(name, lists[1], stores)
    keyword, _, target = detail.partition(": ")
    if keyword == "topic":
        return SinkNode(name, lists[1], topic=target)
    return SinkNode(name, lists[1], extractor=target)


_LONGEST_TEXT = 8 * 1024 * 1024
_MOST_LISTED = 10


@attrs.frozen
class FoundTopology:
    """A topology that a text describes; `line` is its first line, `problems` are problems of its lines."""

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
    listed = [_summarize_topology(number, each) for number, each in enumerate(found, start=1)]
    problems.add_unchosen(listed, topology)
    return found[0].nodes, (*found[0].problems, *problems.found)


def read_descriptions(text: str, file: str = "") -> tuple[FoundTopology, ...]:
    """Return all topologies described in `text`, each with its problems; never raises.

    There is at least one result; without a description it has no nodes. `file` is the location of problems.
    """
    problems = TextProblems(file)
    if len(text) > _LONGEST_TEXT:
        problems.add_too_large(len(text), _LONGEST_TEXT)
        return (FoundTopology(NodeTopology(()), problems.found),)
    if (line := old_form_line(text)) is not None:
        problems.add_too_old(line)
        return (FoundTopology(NodeTopology(()), problems.found),)
    descriptions = split_descriptions(description_lines(text), file)
    if not descriptions:
        problems.add_missing_text()
        return (FoundTopology(NodeTopology(()), problems.found),)
    read = [(_topology_of(description), description) for description in descriptions]
    return tuple(
        FoundTopology(topology, description.problems.found, description.line)
        for topology, description in read
    )


def different_topologies(found: Sequence[FoundTopology]) -> tuple[FoundTopology, ...]:
    """Return the topologies without repeats; the order of lists and problems of the text do not matter."""
    different: dict[object, FoundTopology] = {}
    for each in found:
        key = (each.nodes.name, frozenset(map(_comparison_key, each.nodes.nodes)), bool(each.problems))
        different.setdefault(key, each)
    return tuple(different.values())


def _comparison_key(node: Node) -> object:
    if isinstance(node, SourceNode):
        return node.name, frozenset(node.topics), node.pattern
    if isinstance(node, ProcessorNode):
        return node.name, frozenset(node.parents), frozenset(node.stores)
    return node.name, frozenset(node.parents), node.topic, node.extractor


def _summarize_topology(number: int, found: FoundTopology) -> str:
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
        f"reads {_list_topics([topic for topic in sources if topic not in sinks])}",
        *([f"writes {_list_topics(written)}"] if (written := [t for t in sinks if t not in sources]) else []),
        *(["its text is damaged"] if found.problems else []),
    )
    return f"{number} (line {found.line}): {', '.join(parts)}"


def _list_topics(topics: Sequence[str]) -> str:
    return first_names(topics, _MOST_LISTED) or "nothing"
